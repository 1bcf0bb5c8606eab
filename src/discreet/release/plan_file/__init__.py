"""From a file to a release plan: shape, names, levels and groupings are checked, each mistake with its line."""
