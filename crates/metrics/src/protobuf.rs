//! Prometheus's binary format, in which a histogram is told with its exponential classes, too.
//!
//! Each family is a message behind its length. The messages are those of
//! `io/prometheus/client/metrics.proto` of <https://github.com/prometheus/client_model>, as far as
//! they are needed here. A scraper that keeps native histograms asks for this format; it may drop
//! the classic buckets beside them.

use prost::Message;

use crate::exposition::{Exponential, Family, Kind, Point, Value};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) help: Option<String>,
    #[prost(enumeration = "MetricType", optional, tag = "3")]
    pub(crate) kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) metric: Vec<Metric>,
    #[prost(string, optional, tag = "5")]
    pub(crate) unit: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(crate) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(crate) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(crate) counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(crate) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LabelPair {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) value: Option<String>,
}

/// A counter or a gauge: their messages are alike.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Number {
    #[prost(double, optional, tag = "1")]
    pub(crate) value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(crate) sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(crate) schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub(crate) zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pub(crate) zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub(crate) positive_delta: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(crate) upper_bound: Option<f64>,
}

/// So many classes one after the other: the first so far behind the end of the span before.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct BucketSpan {
    #[prost(sint32, optional, tag = "1")]
    pub(crate) offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) length: Option<u32>,
}

/// All families, one message after the other.
pub(crate) fn write(families: &[Family]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 << 10);
    for family in families {
        bytes.extend_from_slice(&message(family).encode_length_delimited_to_vec());
    }
    bytes
}

fn message(family: &Family) -> MetricFamily {
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    MetricFamily {
        name: Some(family.sample_name()),
        help: Some(format!("{}.", family.help)),
        kind: Some(kind.into()),
        metric: family.points.iter().map(|point| metric(point, family.kind)).collect(),
        unit: family.unit().map(str::to_owned),
    }
}

fn metric(point: &Point, kind: Kind) -> Metric {
    let label = |(name, value): &(String, String)| LabelPair {
        name: Some(name.clone()),
        value: Some(value.clone()),
    };
    let mut metric =
        Metric { label: point.labels.iter().map(label).collect(), ..Metric::default() };
    match &point.value {
        Value::Number(number) => {
            let number = Some(Number { value: Some(number.as_real()) });
            match kind {
                Kind::Counter => metric.counter = number,
                Kind::Gauge | Kind::Histogram => metric.gauge = number,
            }
        }
        Value::Histogram { buckets, sum, exponential } => {
            metric.histogram = Some(histogram(buckets, *sum, exponential.as_ref()));
        }
    }
    metric
}

fn histogram(buckets: &[(f64, u64)], sum: f64, exponential: Option<&Exponential>) -> Histogram {
    let mut told = Histogram { sample_sum: Some(sum), ..Histogram::default() };
    let mut count = buckets.last().map_or(0, |(_, within)| *within);
    if let Some(classes) = exponential {
        // All of them are in the classes. The classic buckets were read at another moment.
        count = classes.zero_count + classes.counts.iter().map(|(_, count)| count).sum::<u64>();
        told.schema = Some(classes.schema);
        told.zero_threshold = Some(classes.zero_threshold);
        told.zero_count = Some(classes.zero_count);
        (told.positive_span, told.positive_delta) = spans(&classes.counts);
        if told.positive_span.is_empty() {
            // What has neither spans nor a wide zero class is taken for a classic histogram.
            told.positive_span.push(BucketSpan { offset: Some(0), length: Some(0) });
        }
    }
    told.bucket = buckets
        .iter()
        .map(|(bound, within)| Bucket {
            cumulative_count: Some((*within).min(count)),
            upper_bound: Some(*bound),
        })
        .collect();
    told.sample_count = Some(count);
    told
}

/// Where classes stand, and of each how many more it has than the one before.
fn spans(counts: &[(i32, u64)]) -> (Vec<BucketSpan>, Vec<i64>) {
    let mut spans: Vec<BucketSpan> = Vec::new();
    let mut deltas = Vec::with_capacity(counts.len());
    let (mut next, mut before) = (0, 0_i64);
    for (class, count) in counts {
        match spans.last_mut() {
            Some(span) if *class == next => span.length = span.length.map(|length| length + 1),
            _ => spans.push(BucketSpan { offset: Some(class - next), length: Some(1) }),
        }
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        deltas.push(count - before);
        (next, before) = (class + 1, count);
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exposition, Format};

    fn families(bytes: &[u8]) -> Vec<MetricFamily> {
        let mut rest = bytes;
        let mut families = Vec::new();
        while !rest.is_empty() {
            families.push(MetricFamily::decode_length_delimited(&mut rest).expect("a message"));
        }
        families
    }

    #[test]
    fn counters_and_gauges_are_told_under_the_names_of_the_text() {
        let mut exposition = Exposition::new(Format::Protobuf);
        let reads = exposition.family("x_read_bytes", Kind::Counter, "Bytes read");
        reads.sample(&[("mount", "/a \"b\"")], 7);
        exposition.family("x_ratio", Kind::Gauge, "A share").sample(&[], 0.0);
        let [reads, ratio] = &families(&exposition.finish())[..] else { panic!("two families") };
        assert_eq!(reads.name.as_deref(), Some("x_read_bytes_total"));
        assert_eq!((reads.kind(), reads.unit.as_deref()), (MetricType::Counter, Some("bytes")));
        assert_eq!(reads.metric[0].label[0].value.as_deref(), Some("/a \"b\""));
        assert_eq!(reads.metric[0].counter.and_then(|one| one.value), Some(7.0));
        assert_eq!(ratio.metric[0].gauge.and_then(|one| one.value), Some(0.0), "a zero is sent");
    }

    fn told(counts: &[(i32, u64)], zero_count: u64) -> Histogram {
        let mut exposition = Exposition::new(Format::Protobuf);
        let times = exposition.family("x_seconds", Kind::Histogram, "Times");
        let classes =
            Exponential { schema: 2, zero_threshold: 0.5, zero_count, counts: counts.to_vec() };
        times.histogram(&[], &[(1.0, 2), (f64::INFINITY, 99)], 4.25, Some(classes));
        families(&exposition.finish())[0].metric[0].histogram.clone().expect("a histogram")
    }

    #[test]
    fn classes_are_told_by_spans_and_differences() {
        let told = told(&[(-3, 5), (-2, 2), (4, 2)], 1);
        assert_eq!((told.sample_count, told.sample_sum), (Some(10), Some(4.25)));
        assert_eq!(
            (told.schema, told.zero_threshold, told.zero_count),
            (Some(2), Some(0.5), Some(1))
        );
        let spans: Vec<_> = told
            .positive_span
            .iter()
            .map(|span| (span.offset.unwrap_or(0), span.length.unwrap_or(0)))
            .collect();
        assert_eq!(spans, [(-3, 2), (5, 1)]);
        assert_eq!(told.positive_delta, [5, -3, 0]);
        // No bucket has more than there are.
        assert_eq!(told.bucket[1].cumulative_count, Some(10));
        assert_eq!(told.bucket[1].upper_bound, Some(f64::INFINITY));
    }

    #[test]
    fn one_that_has_counted_nothing_is_native_still() {
        let told = told(&[], 0);
        assert_eq!((told.sample_count, told.positive_span.len()), (Some(0), 1));
        assert_eq!(told.positive_span[0].length, Some(0));
    }
}
