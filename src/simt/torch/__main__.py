"""`python -m simt.torch`: see `simt.cli.torch_scripts`."""


def main() -> None:
    from simt.cli.torch_scripts import app

    app(prog_name="python -m simt.torch")


if __name__ == "__main__":
    main()
