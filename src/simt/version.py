"""The version of simt, which the package takes from here. CITATION.cff and CHANGELOG.md name it, too; a test
compares them."""

__version__ = "0.2.0"
