"""The contracts that ship with the package, one TOML file each; `gradcheck_plus.expectations` reads them."""
