"""What every run has, of a trace or a program: progress, limits, stopping, and saving as launches finish."""
