"""Programs to try: `simt run saxpy`, or read them."""
