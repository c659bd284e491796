"""`python -m devlet` is `devlet`."""

from devlet.cli.main import main

if __name__ == "__main__":
    main()
