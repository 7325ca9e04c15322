"""Cedar ends here: policies are loaded, guarded, asked and tested in this package, the only one that imports cedarpy."""
