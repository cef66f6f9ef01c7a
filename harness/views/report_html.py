"""A report as one HTML file: its style and figures are in it, and nothing is loaded."""

from collections.abc import Iterable
from html import escape

from harness.views.drawing import svg
from harness.views.report_blocks import Block, Figure, Heading, Items, Paragraph, Table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 46rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid #c3ccd5; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #e6eaee;
  vertical-align: top; }
th, td { white-space: nowrap; } td.long { white-space: normal; overflow-wrap: anywhere; }
p, h1, h2, h3 { overflow-wrap: anywhere; }
figure { margin: 1rem 0; } figcaption, .quiet { color: #52606d; font-size: .85rem; }
svg { width: 100%; height: auto; font-family: system-ui, sans-serif; }
ul { padding-left: 1.2rem; } li { overflow-wrap: anywhere; }
@media print { h2, h3 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""
_SHORT = 24
"""Characters of a cell that stays on one line."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(title: str, blocks: Iterable[Block]) -> str:
    """The whole document; its policy forbids every request and every script."""
    body = "\n".join(map(_element, blocks))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _element(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        quiet = ' class="quiet"' if block.quiet else ""
        return f"<p{quiet}>{escape(block.text)}</p>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in block.texts)}</ul>"
    if isinstance(block, Figure):
        words = escape(block.words)
        return f"<figure>{svg(block.drawing)}<figcaption>{words}</figcaption></figure>"
    return _table(block)


def _table(block: Table) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in block.head)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in block.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(text: str) -> str:
    """A long one is wrapped, an id or a number is not."""
    long = ' class="long"' if len(text) > _SHORT else ""
    return f"<td{long}>{escape(text)}</td>"
