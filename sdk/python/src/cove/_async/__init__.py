"""The package in asyncio. All but stream.py is where cove._sync is made from."""
