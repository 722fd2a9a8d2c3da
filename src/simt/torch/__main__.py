"""`python -m simt.torch`: see `simt.cli.torch_scripts`."""

if __name__ == "__main__":
    from simt.cli.torch_scripts import app

    app(prog_name="python -m simt.torch")
