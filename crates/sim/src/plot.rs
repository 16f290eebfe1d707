//! Draws curves: dots on a terminal, and self-contained SVG.
//!
//! The horizontal axis is the size of the cache, logarithmic. The vertical axis is the hit ratio
//! from 0 to 100%.

use std::fmt::Write as _;

use ogive_text::escape;

/// A named line through points of size in bytes (or entries) and hit ratio from 0 to 1.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points, by rising size.
    pub points: Vec<(u64, f64)>,
}

/// The label of a size on the axis.
pub type SizeText<'a> = &'a dyn Fn(u64) -> String;

const MARKS: [char; 14] = ['o', 'x', '+', '*', '#', '@', '%', '&', '=', 'a', 'b', 'c', 'd', 'e'];
/// Colours that most people can distinguish (Okabe and Ito), and as many more.
const COLOURS: [&str; 13] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f3c8d",
    "#11a579", "#3969ac", "#f2b701", "#e73f74", "#80ba5a",
];

fn range(series: &[Series]) -> Option<(f64, f64)> {
    let sizes = || series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
    let least = sizes().min()?.max(1) as f64;
    let most = sizes().max()?.max(1) as f64;
    Some((least.ln(), most.ln().max(least.ln() + f64::EPSILON)))
}

/// Position of a size between 0 and 1.
fn position(size: u64, (least, most): (f64, f64)) -> f64 {
    ((size.max(1) as f64).ln() - least) / (most - least)
}

/// A plot of `columns` by `rows` characters, with the legend below.
#[must_use]
pub fn terminal(series: &[Series], columns: usize, rows: usize, size_text: SizeText<'_>) -> String {
    const MARGIN: usize = 6;
    let Some(range) = range(series) else { return String::new() };
    let (width, height) = (columns.saturating_sub(MARGIN + 1).max(20), rows.max(5));
    let mut cells = vec![vec![' '; width]; height];
    for (number, series) in series.iter().enumerate() {
        let mark = MARKS[number % MARKS.len()];
        let positions = (0..width).map(|column| (column, column as f64 / (width - 1) as f64));
        for (column, at_position) in positions {
            let Some(ratio) = interpolate(&series.points, range, at_position) else { continue };
            let row = ((1.0 - ratio.clamp(0.0, 1.0)) * (height - 1) as f64).round() as usize;
            cells[row][column] = mark;
        }
    }
    let mut text = String::new();
    for (number, row) in cells.iter().enumerate() {
        let percent = 100.0 * (1.0 - number as f64 / (height - 1) as f64);
        let label = if number % 4 == 0 || number == height - 1 {
            format!("{percent:>4.0}%")
        } else {
            String::new()
        };
        let line: String = row.iter().collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{label:>5}|{}", line.trim_end());
    }
    let (least, most) = (range.0.exp().round() as u64, range.1.exp().round() as u64);
    let (left, right) = (size_text(least), size_text(most));
    let gap = width.saturating_sub(left.len() + right.len());
    let _ = writeln!(text, "     +{}", "-".repeat(width));
    let _ = writeln!(text, "      {left}{}{right}", " ".repeat(gap));
    for (number, series) in series.iter().enumerate() {
        let _ = write!(text, "      {} {}", MARKS[number % MARKS.len()], series.name);
    }
    text.push('\n');
    text
}

/// The ratio at a position, interpolated linearly.
fn interpolate(points: &[(u64, f64)], range: (f64, f64), at_position: f64) -> Option<f64> {
    let at = |point: &(u64, f64)| position(point.0, range);
    let after = points.iter().position(|point| at(point) >= at_position - 1e-9)?;
    let (next, here) = (&points[after], at(&points[after]));
    if after == 0 {
        return (here - at_position < 0.02).then_some(next.1);
    }
    let before = &points[after - 1];
    let share = (at_position - at(before)) / (here - at(before)).max(1e-12);
    Some(before.1 + (next.1 - before.1) * share)
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// The same as an SVG document.
#[must_use]
pub fn svg(title: &str, series: &[Series], size_text: SizeText<'_>) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
        escape(title)
    );
    let Some(range) = range(series) else { return out + "</svg>\n" };
    let x = |size: u64| LEFT + position(size, range) * (WIDTH - LEFT - RIGHT);
    let y = |ratio: f64| TOP + (1.0 - ratio.clamp(0.0, 1.0)) * (HEIGHT - TOP - BOTTOM);
    let right = WIDTH - RIGHT;
    // Writing to a String cannot fail.
    for step in 0..=10 {
        let (at, percent) = (y(f64::from(step) / 10.0), step * 10);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent}%</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for step in 0..=5 {
        let size = (range.0 + (range.1 - range.0) * f64::from(step) / 5.0).exp().round() as u64;
        let (at, below) = (x(size), HEIGHT - BOTTOM + 18.0);
        let text = escape(&size_text(size));
        let _ =
            writeln!(out, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{text}</text>");
    }
    for (number, series) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let mut line = String::new();
        for (size, ratio) in &series.points {
            let _ = write!(line, "{:.1},{:.1} ", x(*size), y(*ratio));
        }
        let (key, name) = (TOP + 10.0 + 18.0 * number as f64, escape(&series.name));
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{key}\" y2=\"{key}\" stroke=\"{colour}\" \
             stroke-width=\"2\"/><text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            line.trim_end(),
            right + 12.0,
            right + 36.0,
            right + 42.0,
            key + 4.0
        );
    }
    let middle = LEFT + (right - LEFT) / 2.0;
    let _ = writeln!(
        out,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">size of the cache</text>\n</svg>",
        HEIGHT - 10.0
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Vec<Series> {
        let points = |top: f64| (0..=10).map(|n| (1 << n, top * n as f64 / 10.0)).collect();
        vec![
            Series { name: "lru".into(), points: points(0.5) },
            Series { name: "a<b".into(), points: points(1.0) },
        ]
    }

    #[test]
    fn a_plot_has_its_corners_and_its_legend() {
        let text = terminal(&series(), 60, 11, &|size| size.to_string());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(" 100%|") && lines[0].ends_with('x'), "{text}");
        assert!(lines[10].starts_with("   0%|x"), "{text}");
        assert!(lines[5].ends_with('o'), "{text}");
        assert!(lines[12].contains("1 ") && lines[12].ends_with("1024"), "{text}");
        assert!(lines[13].contains("o lru") && lines[13].contains("x a<b"), "{text}");
        assert!(terminal(&[], 60, 11, &|size| size.to_string()).is_empty());
    }

    #[test]
    fn an_svg_is_complete_and_escapes_names() {
        let text = svg("curves & co", &series(), &|size| format!("{size} B"));
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert!(text.contains("curves &amp; co") && text.contains("a&lt;b"));
        assert_eq!(text.matches("<polyline").count(), 2);
    }
}
