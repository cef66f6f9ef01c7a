"""A report as PDF, with reportlab (the extra `report`): pages of A4, figures as vectors."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.domain.late import later
from harness.errors import REPORT, MissingExtraError
from harness.views import report_blocks as parts
from harness.views.drawing import Dot, Drawing, Shape, Stroke

if TYPE_CHECKING:
    from reportlab import platypus
    from reportlab.graphics import shapes
    from reportlab.lib import colors, styles
    from reportlab.pdfbase import pdfmetrics, ttfonts
else:
    platypus = later("reportlab.platypus")
    shapes = later("reportlab.graphics.shapes")
    colors = later("reportlab.lib.colors")
    styles = later("reportlab.lib.styles")
    pdfmetrics = later("reportlab.pdfbase.pdfmetrics")
    ttfonts = later("reportlab.pdfbase.ttfonts")

_FONTS = (
    Path("/usr/share/fonts/truetype/dejavu"),
    Path("/usr/share/fonts/dejavu-sans-fonts"),
    Path("/usr/share/fonts/TTF"),
)
"""Where distributions keep DejaVu, which has the characters of most languages; without it a PDF has
the Western ones."""
_INK, _QUIET, _RULE = "#1f2933", "#52606d", "#c3ccd5"
_PAGE, _MARGIN = (595.28, 841.89), 51.0
"""A4 and its margin in points."""
_SIZES = {1: 18, 2: 13, 3: 11}
_ROOM = 190
"""Points below a heading: a figure fits."""
_WIDEST = 30
"""Characters by which a column's width is reckoned."""


def pdf(title: str, blocks: Iterable[parts.Block], made: datetime) -> bytes:
    """The document's bytes; `made` is the date in it. Raises MissingExtraError without the
    extra."""
    try:
        template = platypus.SimpleDocTemplate
    except ImportError as error:
        raise MissingExtraError(
            "A PDF is written by reportlab, which is not here; expected the extra `report`.",
            hint=f"Install it: {REPORT}. `--out report.html` needs nothing.",
        ) from error
    stream = BytesIO()
    page = template(
        stream,
        pagesize=_PAGE,
        **dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), _MARGIN),
        title=title,
        author="experiment-harness",
        invariant=True,
    )
    foot = f"{title}, {made:%Y-%m-%d %H:%M} UTC"
    maker = _Maker(page.width)

    def footer(canvas: Any, _document: Any) -> None:
        canvas.setFont(maker.regular, 7)
        canvas.drawString(_MARGIN, 26, foot)
        canvas.drawRightString(_PAGE[0] - _MARGIN, 26, str(canvas.getPageNumber()))

    story = [made_of for block in blocks for made_of in maker.flowing(block)]
    page.build(story, onFirstPage=footer, onLaterPages=footer)
    return stream.getvalue()


def _fonts() -> tuple[str, str]:
    """(regular, bold), registered."""
    for folder in _FONTS:
        files = {"DejaVu": "DejaVuSans.ttf", "DejaVu-Bold": "DejaVuSans-Bold.ttf"}
        if all((folder / file).is_file() for file in files.values()):
            for name, file in files.items():
                pdfmetrics.registerFont(ttfonts.TTFont(name, folder / file))
            return "DejaVu", "DejaVu-Bold"
    return "Helvetica", "Helvetica-Bold"


class _Maker:
    """Makes of each block what reportlab lays out on pages `width` points wide."""

    def __init__(self, width: float) -> None:
        self._width = width
        self.regular, self._bold = _fonts()

    def flowing(self, block: parts.Block) -> Iterator[Any]:
        if isinstance(block, parts.Heading):
            # Alone at the foot of a page it says nothing.
            yield platypus.CondPageBreak(_ROOM)
            yield self._paragraph(block.text, _SIZES[block.level], bold=True, above=8)
        elif isinstance(block, parts.Paragraph):
            size, colour = (8, _QUIET) if block.quiet else (9.5, _INK)
            yield self._paragraph(block.text, size, colour=colour)
        elif isinstance(block, parts.Items):
            for text in block.texts:
                yield self._paragraph(text, 9, bullet="•")
        elif isinstance(block, parts.Figure):
            words = self._paragraph(block.words, 8, colour=_QUIET)
            yield platypus.KeepTogether([self._figure(block.drawing), words])
        else:
            yield self._table(block)

    def _paragraph(
        self,
        text: str,
        size: float,
        *,
        bold: bool = False,
        colour: str = _INK,
        above: float = 0,
        bullet: str | None = None,
    ) -> Any:
        style = styles.ParagraphStyle(
            "text",
            fontName=self._bold if bold else self.regular,
            fontSize=size,
            leading=size * 1.4,
            textColor=colour,
            spaceBefore=above,
            spaceAfter=4,
            leftIndent=0 if bullet is None else 12,
            bulletFontName=self.regular,
            keepWithNext=bold,
            splitLongWords=True,
        )
        return platypus.Paragraph(escape(text, quote=False), style, bulletText=bullet)

    def _table(self, block: parts.Table) -> Any:
        columns = zip(block.head, *block.rows, strict=True)
        shares = [min(_WIDEST, max(8, *map(len, column))) for column in columns]
        widths = [self._width * share / sum(shares) for share in shares]
        cells = [
            [self._paragraph(text, 8, bold=row is block.head) for text in row]
            for row in (block.head, *block.rows)
        ]
        style = [
            ("LINEBELOW", (0, 0), (-1, -1), 0.4, _RULE),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 2),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 0),
        ]
        return platypus.Table(cells, colWidths=widths, style=style, repeatRows=1, spaceAfter=6)

    def _figure(self, drawing: Drawing) -> Any:
        most = _PAGE[1] - 2 * _MARGIN - 40
        scale = min(self._width / drawing.width, most / drawing.height)
        made = shapes.Drawing(drawing.width * scale, drawing.height * scale)
        made.scale(scale, scale)
        for shape in drawing.shapes:
            made.add(self._shape(shape, drawing.height))
        return made

    def _shape(self, shape: Shape, height: float) -> Any:
        """Its y goes up from the lower edge."""
        colour = colors.HexColor(shape.colour)
        if isinstance(shape, Stroke):
            flat = [part for x, y in shape.points for part in (x, height - y)]
            dash = [4, 3] if shape.dashed else None
            return shapes.PolyLine(
                flat, strokeColor=colour, strokeWidth=shape.width, strokeDashArray=dash
            )
        x, y = shape.at
        if isinstance(shape, Dot):
            fill = colors.HexColor("#ffffff") if shape.hollow else colour
            return shapes.Circle(
                x, height - y, shape.radius, fillColor=fill, strokeColor=colour, strokeWidth=0.8
            )
        return shapes.String(
            x,
            height - y,
            shape.text,
            fontName=self.regular,
            fontSize=shape.size,
            fillColor=colour,
            textAnchor=shape.anchor,
        )
