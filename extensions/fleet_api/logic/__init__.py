"""What the service decides: filters, pages, tenants, views of objects, plans. It knows nothing of HTTP."""
