"""Data sets that come with the package, to try things on. Everybody in them is made up."""

from discreet.data.sets import Bundled, BundledFile, bundled, copy, folder

__all__ = ["Bundled", "BundledFile", "bundled", "copy", "folder"]
