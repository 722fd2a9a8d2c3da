"""simt simulates GPU programs: fast, in detail, deterministically. See docs/ for the tutorial."""
