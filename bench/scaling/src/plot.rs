//! The plot: both axes logarithmic, lines for the model, dots for the published figures.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 50.0;

const NAMES: [(&str, &str); 4] = [
    ("one lock", "#b2182b"),
    ("split locks", "#ef8a62"),
    ("ogive, uniform keys", "#2166ac"),
    ("ogive, zipf 0.99", "#67a9cf"),
];

fn x(threads: usize) -> f64 {
    LEFT + (threads as f64).log2() / 6.0 * (WIDTH - LEFT - 180.0)
}

fn y(rate: f64) -> f64 {
    HEIGHT - BOTTOM - (rate / 500.0).log2() / 8.0 * (HEIGHT - BOTTOM - 20.0)
}

/// The plot of all rows.
pub fn svg(rows: &[(usize, [f64; 4])], published: &[(usize, f64, f64)]) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n"
    );
    for (threads, _) in rows {
        let at = x(*threads);
        let _ = writeln!(
            out,
            "<text x=\"{at:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{threads}</text>",
            HEIGHT - BOTTOM + 18.0
        );
    }
    for doubling in 0..=8 {
        let rate = 500.0 * f64::from(1 << doubling);
        let at = y(rate);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{:.0}\" stroke=\"#ddd\"/><text x=\"{:.0}\" \
            y=\"{:.1}\" text-anchor=\"end\">{rate:.0}</text>",
            x(64),
            LEFT - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">processors (model; \
        dots: published)</text><text x=\"16\" y=\"16\">MB/s</text>",
        x(8),
        HEIGHT - 10.0
    );
    for (line, (name, colour)) in NAMES.iter().enumerate() {
        let points: Vec<String> = rows
            .iter()
            .map(|(threads, row)| format!("{:.1},{:.1}", x(*threads), y(row[line])))
            .collect();
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"{colour}\" \
            points=\"{}\"/>",
            points.join(" ")
        );
        let end = rows.last().map_or(0.0, |(_, row)| y(row[line]));
        let down = if line == 3 { 14.0 } else { 0.0 };
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            x(64) + 8.0,
            end + 4.0 + down
        );
    }
    for (threads, before, after) in published {
        for (rate, (_, colour)) in [before, after].into_iter().zip(NAMES) {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>",
                x(*threads),
                y(*rate)
            );
        }
    }
    out + "</svg>\n"
}
