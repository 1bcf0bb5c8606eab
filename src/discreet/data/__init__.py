"""Data sets that come with the package, to try things on. Everybody in them is made up."""

from discreet.data.sets import bundled, copy, folder

__all__ = ["bundled", "copy", "folder"]
