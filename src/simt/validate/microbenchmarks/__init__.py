"""One file a group; importing a group's file registers its microbenchmarks."""
