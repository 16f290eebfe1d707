//! Figures as tools print them: suffixes, decimal commas, thousands marks, cut digits, durations.
//!
//! Each figure is parsed alone. A text that is not a figure is `None`, never zero.

/// A figure with any mark that a tool appends, as a plain number.
///
/// `12,34` and `12.34` are equal. `9.7K` is 9700 or 9932.8, depending on `thousand`. `26418534+` is
/// read as its remaining digits. `-` (no value) is `None`.
pub(crate) fn scaled(text: &str, thousand: f64) -> Option<f64> {
    let text = text.trim().trim_end_matches('+');
    let digits_end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-')))
        .unwrap_or(text.len());
    let number = plain(&text[..digits_end])?;
    let power = match text[digits_end..].trim().trim_end_matches("/s") {
        "" | "B" | "b" | "%" | "x" | "bytes" => 0,
        "K" | "k" | "KB" | "kB" | "KiB" | "Ki" => 1,
        "M" | "m" | "MB" | "MiB" | "Mi" => 2,
        "G" | "g" | "GB" | "GiB" | "Gi" => 3,
        "T" | "t" | "TB" | "TiB" | "Ti" => 4,
        "P" | "p" | "PB" | "PiB" => 5,
        "E" | "e" | "EB" | "EiB" => 6,
        _ => return None,
    };
    Some(number * thousand.powi(power))
}

/// A byte count with an optional binary suffix: `8.95G`, `32M`, `0B`, `1.5 GiB`.
pub(crate) fn bytes(text: &str) -> Option<f64> {
    scaled(text, 1024.0)
}

/// A count with an optional decimal suffix: `9.7K`, `192K`.
pub(crate) fn count(text: &str) -> Option<f64> {
    scaled(text, 1000.0)
}

/// A percentage, with or without its sign.
pub(crate) fn percent(text: &str) -> Option<f64> {
    plain(text.trim().trim_end_matches('%').trim_end())
}

/// A decimal number without a suffix. A comma is a decimal mark unless it can only separate
/// thousands.
pub(crate) fn plain(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let first = digits.bytes().next()?;
    if !(first.is_ascii_digit() || (first == b'.' && digits.len() > 1)) {
        return None;
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',') {
        return None;
    }
    let number: f64 = match (digits.matches(',').count(), digits.contains('.')) {
        (0, _) => digits.parse().ok()?,
        (1, false) if !divides_thousands(digits) => digits.replace(',', ".").parse().ok()?,
        _ if divides_thousands(digits.split('.').next().unwrap_or(digits)) => {
            digits.replace(',', "").parse().ok()?
        }
        _ => return None,
    };
    Some(if text.starts_with('-') { -number } else { number })
}

/// Whether every comma stands before exactly three digits, and after one to three that do not begin
/// with zero: `1,234,567`, but neither `12,5` nor `0,123`.
fn divides_thousands(digits: &str) -> bool {
    let mut groups = digits.split(',');
    let head = groups.next().unwrap_or_default();
    !head.is_empty()
        && head.len() <= 3
        && !head.starts_with('0')
        && groups.all(|group| group.len() == 3)
}

/// A whole number as kernels print it: decimal or `0x`, with sign.
pub(crate) fn integer(text: &str) -> Option<i128> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x") {
        return i128::from_str_radix(hex, 16).ok();
    }
    if text.len() > 30 {
        return None;
    }
    text.parse().ok()
}

/// CPU time as `top` and `ps` print it, in seconds: `944:14.73`, `0:31`, `00:06:09`, `1-02:03:04`,
/// `62:34,27`. Also `15:26h` (hours, when top runs out of room), `1h23:45` and `3d02h` of htop, and
/// `3d02` of busybox.
pub(crate) fn cpu_seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u32>().ok()?, rest),
        None => (0, text),
    };
    let whole = |text: &str| text.parse::<u32>().ok().map(f64::from);
    let in_hours = rest.strip_suffix('h').or_else(|| rest.strip_suffix('H'));
    if let Some(hours) = in_hours.filter(|hours| !hours.contains('d')) {
        let (hours, minutes) = hours.split_once(':').unwrap_or((hours, "0"));
        return Some(plain(hours)? * 3600.0 + plain(minutes)? * 60.0);
    }
    if let Some((days, hours)) = rest.split_once('d') {
        return Some(whole(days)? * 86_400.0 + whole(hours.trim_end_matches('h'))? * 3600.0);
    }
    if let Some((hours, behind)) = rest.split_once('h') {
        let (minutes, seconds) = behind.split_once(':').unwrap_or((behind, "0"));
        return Some(whole(hours)? * 3600.0 + plain(minutes)? * 60.0 + plain(seconds)?);
    }
    let mut seconds = 0.0;
    let mut parts = 0;
    for part in rest.split(':') {
        seconds = seconds * 60.0 + plain(&part.replace(',', "."))?;
        parts += 1;
    }
    (2..=3).contains(&parts).then(|| seconds + f64::from(days) * 86_400.0)
}

/// A duration with its unit, in seconds: `1.5us`, `12ms`, `1m28.661s`, `3.2 s`, `458ns`.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Some((minutes, rest)) = text.split_once('m')
        && let Some(rest) = rest.strip_suffix('s')
        && !rest.is_empty()
    {
        return Some(plain(minutes)? * 60.0 + plain(rest)?);
    }
    let at = text.find(|c: char| c.is_alphabetic() || c == 'µ')?;
    let unit = match text[at..].trim() {
        "ns" | "nsec" => 1e-9,
        "us" | "µs" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Some(plain(&text[..at])? * unit)
}

/// A time of day, `07:46:58` or `03:10:02 PM`, in seconds since midnight.
pub(crate) fn time_of_day(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let clock = words.next()?;
    let mut parts = clock.split(':');
    let hours: u32 = parts.next()?.parse().ok()?;
    let minutes: u32 = parts.next()?.parse().ok()?;
    let seconds = plain(parts.next()?)?;
    if parts.next().is_some() || hours > 23 || minutes > 59 || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    let hours = match words.next() {
        Some("PM") if hours < 12 => hours + 12,
        Some("AM") if hours == 12 => 0,
        _ => hours,
    };
    Some(f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0 + seconds)
}

/// The middle value; the lower one if their number is even. `None` if there are no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Seconds between rows that begin with a time of day: the median step.
pub(crate) fn interval(times: &[f64]) -> Option<f64> {
    let steps: Vec<f64> =
        times.windows(2).map(|pair| (pair[1] - pair[0]).rem_euclid(86_400.0)).collect();
    median(&steps).filter(|step| *step > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_in_every_form() {
        assert_eq!(plain("12,34"), Some(12.34));
        assert_eq!(plain("1,234,567"), Some(1_234_567.0));
        assert_eq!(plain("1,234.5"), Some(1234.5));
        assert_eq!(plain("0,123"), Some(0.123));
        assert_eq!(plain("-"), None);
        assert_eq!(plain(""), None);
        assert_eq!(plain("nan"), None);
        assert_eq!(count("9.7K"), Some(9700.0));
        assert_eq!(bytes("32M"), Some(33_554_432.0));
        assert_eq!(bytes("26418534+"), Some(26_418_534.0));
        assert_eq!(bytes("0B"), Some(0.0));
        assert_eq!(bytes("1.0 GiB"), Some(1_073_741_824.0));
        assert_eq!(bytes("12Q"), None);
        assert_eq!(percent("0,07%"), Some(0.07));
    }

    #[test]
    fn times_are_read_in_every_form() {
        assert_eq!(cpu_seconds("944:14.73"), Some(56_654.73));
        assert_eq!(cpu_seconds("00:06:09"), Some(369.0));
        assert_eq!(cpu_seconds("1-02:03:04"), Some(93_784.0));
        assert_eq!(cpu_seconds("15:26h"), Some(55_560.0));
        assert_eq!(cpu_seconds("1h23:45"), Some(5025.0));
        assert_eq!(cpu_seconds("3d02h"), Some(266_400.0));
        assert_eq!(cpu_seconds("3d02"), Some(266_400.0));
        assert_eq!(cpu_seconds("1h23"), Some(4980.0));
        assert_eq!(cpu_seconds("12"), None);
        assert_eq!(seconds("1m28.661s"), Some(88.661));
        assert_eq!(seconds("12ms"), Some(0.012));
        assert_eq!(time_of_day("03:10:02 PM"), Some(54_602.0));
        assert_eq!(time_of_day("25:00:00"), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
        assert_eq!(interval(&[86_399.0, 0.0, 1.0]), Some(1.0));
    }
}
