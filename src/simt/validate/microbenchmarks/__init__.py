"""One file per group; importing a group's file registers its microbenchmarks."""
