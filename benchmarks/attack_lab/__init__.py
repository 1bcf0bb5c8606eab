"""Every attack of the lab, once against a raw or naive release and once against private ones."""
