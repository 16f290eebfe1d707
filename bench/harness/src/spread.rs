//! Medians with their spread, and how both are written.

/// Median, least and greatest of some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle value, or the mean of the two middle ones.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of the values that are numbers; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, min, max })
    }

    /// `median (min-max)` with a sensible number of digits.
    pub fn render(&self) -> String {
        if self.min == self.max {
            return number(self.median);
        }
        format!("{} ({}-{})", number(self.median), number(self.min), number(self.max))
    }
}

/// Three significant digits, with separators from 10,000 on.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 10_000.0 => separated(value.round() as i64),
        _ if size >= 100.0 || value == 0.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn separated(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        let odd = Spread::of([3.0, 1.0, 2.0]);
        assert_eq!(odd, Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        let even = Spread::of([4.0, 1.0, 2.0, 3.0]);
        assert_eq!(even, Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of([f64::NAN]), None);
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(-12_345.0), "-12,345");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(1.234), "1.23");
        assert_eq!(number(0.0123), "0.0123");
        assert_eq!(number(0.0), "0");
    }
}
