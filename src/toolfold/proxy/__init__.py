"""The model-API proxy: any client's tools folded on their way to any model."""
