"""The gateway as an OAuth 2.1 resource server: access tokens of an issuer, beside our own."""
