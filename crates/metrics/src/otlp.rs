//! The same metrics for OpenTelemetry: an OTLP request, as bytes of protobuf.
//!
//! Names are those of Prometheus without `_total`, and units follow UCUM. Counters are cumulative
//! since the start of the mount, monotonic, and integers if they are whole. The mount is an
//! attribute of each point, like a label in the other formats. Facts about the process are
//! attributes of the resource.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Measured;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use crate::exposition::{Exposition, Family, Kind, Label, Number, Point, Value};

/// The time span of the counters, in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The start of counting.
    pub begin_ns: u64,
    /// Now.
    pub now_ns: u64,
}

/// The body of a request for `/v1/metrics`.
pub fn request(figures: &Exposition, resource: &[Label<'_>], span: Span) -> Vec<u8> {
    let scope = InstrumentationScope {
        name: "ogive".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let metrics = figures.families().iter().map(|family| metric(family, span)).collect();
    let attributes = resource.iter().map(|(name, value)| attribute(name, value)).collect();
    let metrics_of_resource = ResourceMetrics {
        resource: Some(Resource { attributes, ..Resource::default() }),
        scope_metrics: vec![ScopeMetrics {
            scope: Some(scope),
            metrics,
            schema_url: String::new(),
        }],
        schema_url: String::new(),
    };
    ExportMetricsServiceRequest { resource_metrics: vec![metrics_of_resource] }.encode_to_vec()
}

fn metric(family: &Family, span: Span) -> Metric {
    let aggregation_temporality = AggregationTemporality::Cumulative as i32;
    let points = family.points.iter();
    let numbers =
        |begin_ns| points.clone().filter_map(move |one| number(one, begin_ns, span.now_ns));
    let data = match family.kind {
        Kind::Gauge => Data::Gauge(Gauge { data_points: numbers(0).collect() }),
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(span.begin_ns).collect(),
            aggregation_temporality,
            is_monotonic: true,
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: points.filter_map(|one| histogram(one, span)).collect(),
            aggregation_temporality,
        }),
    };
    let unit = match family.unit() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "1",
    };
    Metric {
        name: family.name.clone(),
        description: family.help.clone(),
        unit: unit.to_owned(),
        metadata: Vec::new(),
        data: Some(data),
    }
}

fn number(point: &Point, begin_ns: u64, now_ns: u64) -> Option<NumberDataPoint> {
    let Value::Number(number) = &point.value else { return None };
    let whole = match number {
        Number::Whole(number) => i64::try_from(*number).ok(),
        Number::Real(_) => None,
    };
    Some(NumberDataPoint {
        attributes: attributes(point),
        start_time_unix_nano: begin_ns,
        time_unix_nano: now_ns,
        value: Some(whole.map_or_else(|| Measured::AsDouble(number.as_real()), Measured::AsInt)),
        ..NumberDataPoint::default()
    })
}

/// A bucket counts only its own events, and the infinite bound is left out.
fn histogram(point: &Point, span: Span) -> Option<HistogramDataPoint> {
    let Value::Histogram { buckets, sum } = &point.value else { return None };
    let mut below = 0;
    let mut bucket_counts = Vec::with_capacity(buckets.len());
    for (_, up_to) in buckets {
        bucket_counts.push(up_to.saturating_sub(below));
        below = below.max(*up_to);
    }
    Some(HistogramDataPoint {
        attributes: attributes(point),
        start_time_unix_nano: span.begin_ns,
        time_unix_nano: span.now_ns,
        // The buckets must add up to it.
        count: bucket_counts.iter().sum(),
        sum: Some(*sum),
        bucket_counts,
        explicit_bounds: buckets
            .iter()
            .map(|(bound, _)| *bound)
            .filter(|b| b.is_finite())
            .collect(),
        ..HistogramDataPoint::default()
    })
}

fn attributes(point: &Point) -> Vec<KeyValue> {
    point.labels.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(name: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Any::StringValue(value.to_owned())) });
    KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::Format;

    #[test]
    fn each_kind_has_its_own_type() {
        let mut figures = Exposition::new(Format::Text);
        let reads = figures.family("x_read_bytes", Kind::Counter, "Bytes read");
        reads.sample(&[("mount", "/a \"b\"")], 7_u64);
        reads.sample(&[("mount", "/huge")], i128::MAX);
        figures.family("x_ratio", Kind::Gauge, "A share").sample(&[], 0.5);
        let times = figures.family("x_seconds", Kind::Histogram, "Times");
        times.histogram(&[("mount", "/")], &[(1.0, 2), (2.0, 2), (f64::INFINITY, 5)], 4.25);
        let span = Span { begin_ns: 10, now_ns: 20 };
        let bytes = request(&figures, &[("service.name", "ogive")], span);

        let request = ExportMetricsServiceRequest::decode(bytes.as_slice()).unwrap();
        let [one] = &request.resource_metrics[..] else { panic!("{request:?}") };
        let resource = one.resource.as_ref().unwrap();
        assert_eq!(resource.attributes, [attribute("service.name", "ogive")]);
        let [bytes, ratio, times] = &one.scope_metrics[0].metrics[..] else { panic!("{one:?}") };
        assert_eq!((bytes.name.as_str(), bytes.unit.as_str()), ("x_read_bytes", "By"));
        let Some(Data::Sum(sum)) = &bytes.data else { panic!("{bytes:?}") };
        assert!(sum.is_monotonic);
        assert_eq!(sum.aggregation_temporality, AggregationTemporality::Cumulative as i32);
        let point = &sum.data_points[0];
        assert_eq!(point.attributes, [attribute("mount", "/a \"b\"")]);
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (10, 20));
        assert_eq!(point.value, Some(Measured::AsInt(7)));
        assert_eq!(sum.data_points[1].value, Some(Measured::AsDouble(i128::MAX as f64)));
        let Some(Data::Gauge(gauge)) = &ratio.data else { panic!("{ratio:?}") };
        assert_eq!(gauge.data_points[0].value, Some(Measured::AsDouble(0.5)));
        assert_eq!(ratio.unit, "1");
        let Some(Data::Histogram(histogram)) = &times.data else { panic!("{times:?}") };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum), (5, Some(4.25)));
        assert_eq!(point.bucket_counts, [2, 0, 3]);
        assert_eq!(point.explicit_bounds, [1.0, 2.0]);
    }
}
