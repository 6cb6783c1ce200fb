"""The page that people watch in: plain files, served by whoever has the films."""

from toast.web.pages import PAGE_FILES, add_page

__all__ = ["PAGE_FILES", "add_page"]
