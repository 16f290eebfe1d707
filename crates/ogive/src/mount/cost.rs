//! The cost of a bucket's requests: prices, and the limits of prefetch.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use ogive_bucket::{Budget, Prices};

use crate::exit::{self, Refusal};
use crate::l2::key::absolute;

const HEADING: &str = "Bucket options";

/// Options for the cost of requests.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct CostArgs {
    /// Pause prefetch while requests exceed this rate: a number, or N/s
    ///
    /// Requests of all kinds count. Demand reads are never held back. Sequential ones use longer
    /// requests, so a reader slows down but never stops.
    #[arg(long, value_name = "N/s", value_parser = a_second, help_heading = HEADING)]
    pub(crate) origin_requests_max: Option<u32>,

    /// Hold prefetch back to keep requests within dollars a day: 2, $2 or $2/day
    ///
    /// Days begin with the mount. Prefetch may spend half of the budget at any time, and the other
    /// half in proportion to the time of day. Demand reads are never held back.
    #[arg(long, value_name = "$/day", value_parser = a_day, help_heading = HEADING)]
    pub(crate) origin_budget: Option<u64>,

    /// File of prices in dollars, if they differ from the store's public ones
    ///
    /// Lines such as "get = 0.40": get, head, list, put and delete for a million requests, received
    /// for 10^9 received bytes. Other prices are the public ones. Those are known for Amazon
    /// (Standard in us-east-1), Google, Azure and Cloudflare; for other stores costs are counted
    /// only with this option.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = HEADING,
        value_parser = absolute())]
    pub(crate) origin_prices: Option<PathBuf>,
}

impl CostArgs {
    /// The first of these options that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.origin_requests_max.is_some(), "--origin-requests-max"),
            (self.origin_budget.is_some(), "--origin-budget"),
            (self.origin_prices.is_some(), "--origin-prices"),
        ];
        given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The limits of prefetch.
    pub(crate) fn budget(&self) -> Budget {
        Budget {
            requests_a_second: self.origin_requests_max,
            microdollars_a_day: self.origin_budget,
        }
    }

    /// The prices of requests to the store at this address; `None` if they are unknown.
    ///
    /// # Errors
    /// A file that cannot be read or has an invalid price; a budget in dollars without any price.
    pub(crate) fn prices(&self, endpoint: &str) -> Result<Option<Prices>, Refusal> {
        let listed = Prices::of(endpoint);
        let Some(path) = &self.origin_prices else {
            if listed.is_none() && self.origin_budget.is_some() {
                let what = "cannot mount: --origin-budget is in dollars, but the prices of this \
                            store are not known";
                return Err(Refusal::new(exit::USAGE, what)
                    .hint("give them with --origin-prices, or use --origin-requests-max"));
            }
            return Ok(listed);
        };
        let listed = listed.unwrap_or(Prices::NONE);
        let refuse = |reason: String| {
            let what = format!("cannot mount: --origin-prices {}: {reason}", path.display());
            Refusal::new(exit::USAGE, what).hint("write lines such as \"get = 0.40\"")
        };
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        prices(&text, listed).map(Some).map_err(refuse)
    }
}

/// Nanodollars of a price in dollars for `of` units: a million requests, or a gigabyte.
fn nanodollars(name: &str, value: &toml::Value, of: f64) -> Result<u64, String> {
    let dollars = match value {
        toml::Value::Float(dollars) => Some(*dollars),
        toml::Value::Integer(dollars) => Some(*dollars as f64),
        _ => None,
    };
    match dollars {
        Some(dollars) if (0.0..=1e6).contains(&dollars) => Ok((dollars * 1e9 / of).round() as u64),
        _ => Err(format!("{name} is not a price in dollars")),
    }
}

/// Overrides prices with those of a list.
fn prices(text: &str, mut prices: Prices) -> Result<Prices, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        error.message().split('\n').next().unwrap_or("not a list of prices").to_owned()
    })?;
    const MILLION: f64 = 1e6;
    for (name, value) in &table {
        let (price, of) = match name.as_str() {
            "get" => (&mut prices.get_nanodollars, MILLION),
            "head" => (&mut prices.head_nanodollars, MILLION),
            "list" => (&mut prices.list_nanodollars, MILLION),
            "put" => (&mut prices.put_nanodollars, MILLION),
            "delete" => (&mut prices.delete_nanodollars, MILLION),
            "received" => (&mut prices.received_gb_nanodollars, 1.0),
            _ => {
                return Err(format!(
                    "unknown price {name}; use get, head, list, put, delete or received"
                ));
            }
        };
        *price = nanodollars(name, value, of)?;
    }
    Ok(prices)
}

fn a_second(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    match number.parse() {
        Ok(rate @ 1..) => Ok(rate),
        _ => Err("not requests a second, such as 100 or 100/s".to_owned()),
    }
}

/// Microdollars a day.
fn a_day(text: &str) -> Result<u64, String> {
    let dollars = text.strip_suffix("/day").unwrap_or(text);
    let dollars = dollars.strip_prefix('$').unwrap_or(dollars);
    match dollars.parse::<f64>() {
        Ok(dollars) if (0.000_001..=1e9).contains(&dollars) => Ok((dollars * 1e6).round() as u64),
        _ => Err("not dollars a day, such as 2 or $2.50/day".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_may_have_their_units() {
        assert_eq!((a_second("100"), a_second("100/s")), (Ok(100), Ok(100)));
        assert_eq!((a_day("2"), a_day("$0.50/day")), (Ok(2_000_000), Ok(500_000)));
        for text in ["0", "-1", "x", "100/m", ""] {
            assert!(a_second(text).is_err(), "{text}");
        }
        for text in ["0", "-1", "nan", "inf", "$", "2/hour"] {
            assert!(a_day(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_budget_in_dollars_needs_prices() {
        let mut cost =
            CostArgs { origin_requests_max: None, origin_budget: Some(1), origin_prices: None };
        assert_eq!(cost.prices("https://s3.amazonaws.com").unwrap(), Some(Prices::AMAZON));
        let refusal = cost.prices("http://127.0.0.1:9000").unwrap_err();
        assert!(refusal.to_string().contains("are not known"), "{refusal}");
        cost.origin_budget = None;
        assert_eq!(cost.prices("http://127.0.0.1:9000").unwrap(), None);
    }

    #[test]
    fn a_price_list_is_relative_to_the_current_directory() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            cost: CostArgs,
        }
        let line = <Line as clap::Parser>::parse_from(["mount", "--origin-prices", "list.toml"]);
        let here = std::env::current_dir().unwrap();
        assert_eq!(line.cost.origin_prices, Some(here.join("list.toml")));
    }

    #[test]
    fn a_price_list_overrides_the_public_prices() {
        let list = "# ours\nget = 0.30\nput = 4\nreceived = 0.09\n";
        let expected = Prices {
            get_nanodollars: 300,
            put_nanodollars: 4_000,
            received_gb_nanodollars: 90_000_000,
            ..Prices::AMAZON
        };
        assert_eq!(prices(list, Prices::AMAZON), Ok(expected));
        for (list, reason) in [
            ("got = 1", "unknown price got"),
            ("get = \"1\"", "not a price"),
            ("get = -1", "not a price"),
            ("get = nan", "not a price"),
            ("get 1", ""),
        ] {
            let error = prices(list, Prices::AMAZON).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
