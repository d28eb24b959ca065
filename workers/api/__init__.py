"""The HTTP door (FastAPI): one document in, its job and its result out. `app.make_api` builds it."""
