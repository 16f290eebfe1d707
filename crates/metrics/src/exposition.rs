//! Metric families, and the two text formats that scrapers read: Prometheus's own and OpenMetrics
//! 1.0.
//!
//! The formats differ in the place of a counter's `_total`, the unit and the end. Histograms have
//! classic buckets in both.

use std::fmt::{Display, Write as _};

/// The text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus's text format 0.0.4, which every scraper understands.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that a scraper's `Accept` field prefers, the first of several; Prometheus's text
    /// if in doubt.
    pub fn accepted(accept: Option<&str>) -> Self {
        let parts = accept.unwrap_or_default().split(',');
        let mut best = (0.0, Self::Text);
        for (quality, format) in parts.filter_map(offered) {
            if quality > best.0 {
                best = (quality, format);
            }
        }
        best.1
    }

    /// The media type to send.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A format in the field and its quality, if ogive supports it.
fn offered(part: &str) -> Option<(f32, Format)> {
    let mut words = part.split(';').map(str::trim);
    let format = match words.next()? {
        "application/openmetrics-text" => Format::OpenMetrics,
        "text/plain" => Format::Text,
        _ => return None,
    };
    let mut quality = 1.0;
    for word in words {
        let Some((name, value)) = word.split_once('=') else { continue };
        if name.trim() == "q" {
            quality = value.trim().parse().ok()?;
        }
    }
    Some((quality, format))
}

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that grows until the process ends.
    Counter,
    /// A level.
    Gauge,
    /// The number of events within each of some bounds.
    Histogram,
}

/// The number of a sample. Whole numbers are written with all digits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A count.
    Whole(i128),
    /// Anything else.
    Real(f64),
}

impl Number {
    /// The number as floating point, exact to 53 bits.
    pub fn as_real(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Real(number) => number,
        }
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

macro_rules! whole {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Number {
            fn from(number: $kind) -> Self {
                Self::Whole(number.into())
            }
        }
    )*};
}
whole!(i32, u64, i128);

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
        }
    }
}

/// Metrics under construction.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    families: Vec<Family>,
}

/// A family of metrics.
#[derive(Debug)]
pub struct Family {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) help: String,
    pub(crate) points: Vec<Point>,
}

/// A sample or a histogram.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Number(Number),
    Histogram {
        /// Upper bounds, the last one infinite, and the number of events at or below each.
        buckets: Vec<(f64, u64)>,
        sum: f64,
    },
}

/// A label: name and value.
pub type Label<'a> = (&'a str, &'a str);

impl Exposition {
    /// An empty exposition in a format.
    pub fn new(format: Format) -> Self {
        Self { format, families: Vec::new() }
    }

    /// Begins a family. A counter's name is without `_total`, and `help` is one plain line.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) -> &mut Family {
        let (name, help) = (name.to_owned(), help.to_owned());
        self.families.push(Family { name, kind, help, points: Vec::new() });
        // The family was just added.
        let last = self.families.len() - 1;
        &mut self.families[last]
    }

    pub(crate) fn families(&self) -> &[Family] {
        &self.families
    }

    /// The whole text.
    pub fn finish(self) -> Vec<u8> {
        let mut text = String::with_capacity(16 << 10);
        for family in &self.families {
            family.write(self.format, &mut text);
        }
        if self.format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text.into_bytes()
    }
}

impl Family {
    /// Adds a sample.
    pub fn sample(&mut self, labels: &[Label<'_>], value: impl Into<Number>) {
        self.put(labels, Value::Number(value.into()));
    }

    /// Adds a histogram: for each upper bound the number of events at or below it, and the sum of
    /// all. The last bound is infinite, and its number is the number of all events.
    pub fn histogram(&mut self, labels: &[Label<'_>], buckets: &[(f64, u64)], sum: f64) {
        self.put(labels, Value::Histogram { buckets: buckets.to_vec(), sum });
    }

    /// The name of its samples in Prometheus's formats.
    pub(crate) fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.clone(),
        }
    }

    fn put(&mut self, labels: &[Label<'_>], value: Value) {
        let own = |(name, value): &Label<'_>| ((*name).to_owned(), (*value).to_owned());
        self.points.push(Point { labels: labels.iter().map(own).collect(), value });
    }

    /// The unit in its name, if it has one.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"]
            .into_iter()
            .find(|unit| self.name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))
    }

    fn write(&self, format: Format, text: &mut String) {
        let sample = self.sample_name();
        let shown = if format == Format::Text { &sample } else { &self.name };
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing to a String cannot fail, so the results are ignored.
        let _ = writeln!(text, "# HELP {shown} {}.\n# TYPE {shown} {kind}", self.help);
        if let (Some(unit), Format::OpenMetrics) = (self.unit(), format) {
            let _ = writeln!(text, "# UNIT {shown} {unit}");
        }
        for point in &self.points {
            point.write(&sample, text);
        }
    }
}

impl Point {
    fn write(&self, name: &str, text: &mut String) {
        match &self.value {
            Value::Number(number) => self.line(text, name, "", None, number),
            Value::Histogram { buckets, sum } => {
                for (bound, below) in buckets {
                    let bound = match *bound {
                        f64::INFINITY => "+Inf".to_owned(),
                        // OpenMetrics requires a fraction in whole bounds.
                        bound => format!("{bound:?}"),
                    };
                    self.line(text, name, "_bucket", Some(&bound), below);
                }
                self.line(text, name, "_sum", None, sum);
                let count = buckets.last().map_or(0, |(_, below)| *below);
                self.line(text, name, "_count", None, &count);
            }
        }
    }

    fn line(
        &self,
        text: &mut String,
        name: &str,
        suffix: &str,
        bound: Option<&str>,
        value: &dyn Display,
    ) {
        let _ = write!(text, "{name}{suffix}");
        let labels = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let further = bound.map(|bound| ("le", bound));
        for (number, (name, value)) in labels.chain(further).enumerate() {
            text.push(if number == 0 { '{' } else { ',' });
            let _ = write!(text, "{name}=\"");
            escape(text, value);
            text.push('"');
        }
        if !self.labels.is_empty() || further.is_some() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

/// Escapes a value for both formats.
fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: Format) -> String {
        let mut exposition = Exposition::new(format);
        let reads = exposition.family("x_read_bytes", Kind::Counter, "Bytes read");
        reads.sample(&[("mount", "/a \"b\"\\\n")], 7);
        exposition.family("x_ratio", Kind::Gauge, "A share").sample(&[], 0.5);
        let times = exposition.family("x_seconds", Kind::Histogram, "Times");
        times.histogram(&[("mount", "/")], &[(1.0, 2), (f64::INFINITY, 3)], 4.25);
        String::from_utf8(exposition.finish()).expect("the text is UTF-8")
    }

    #[test]
    fn the_older_format_is_what_every_scraper_reads() {
        let expected = "\
# HELP x_read_bytes_total Bytes read.
# TYPE x_read_bytes_total counter
x_read_bytes_total{mount=\"/a \\\"b\\\"\\\\\\n\"} 7
# HELP x_ratio A share.
# TYPE x_ratio gauge
x_ratio 0.5
# HELP x_seconds Times.
# TYPE x_seconds histogram
x_seconds_bucket{mount=\"/\",le=\"1.0\"} 2
x_seconds_bucket{mount=\"/\",le=\"+Inf\"} 3
x_seconds_sum{mount=\"/\"} 4.25
x_seconds_count{mount=\"/\"} 3
";
        assert_eq!(text(Format::Text), expected);
    }

    #[test]
    fn openmetrics_has_families_without_total_units_and_an_end() {
        let text = text(Format::OpenMetrics);
        for line in [
            "# TYPE x_read_bytes counter\n# UNIT x_read_bytes bytes\nx_read_bytes_total{",
            "# UNIT x_seconds seconds\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.ends_with("x_seconds_count{mount=\"/\"} 3\n# EOF\n"), "{text}");
        assert!(!text.contains("# UNIT x_ratio"), "{text}");
    }

    #[test]
    fn the_newer_format_is_sent_on_request() {
        let open = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1";
        assert_eq!(Format::accepted(Some(open)), Format::OpenMetrics);
        for other in ["*/*", "", "text/plain", "application/openmetrics-text;q=0", "x, y;;=,"] {
            assert_eq!(Format::accepted(Some(other)), Format::Text, "{other}");
        }
        // The request of a Prometheus server that prefers its binary format.
        let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                      encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,\
                      text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::accepted(Some(native)), Format::OpenMetrics);
        assert_eq!(Format::accepted(None), Format::Text);
    }
}
