//! How a bucket is reached: what is typed, in the words of the AWS command line.

use super::StoreKind;
#[cfg(feature = "demo")]
use crate::demo::{Credentials, DemoStore};
use std::time::Duration;

/// How to reach a bucket, in the words of the AWS command line. Credentials are never in it: they
/// come from the environment, profiles, single sign-on, a process, a web identity, the container or
/// the machine, in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Whose protocol the store speaks.
    pub kind: StoreKind,
    /// The store of this process, if that is what is meant: [`RemoteOptions::of_demo`] says so.
    #[cfg(feature = "demo")]
    pub demo: Option<Demo>,
    /// Name of the bucket.
    pub bucket: String,
    /// Address of the store, with its scheme; Amazon's if there is none.
    pub endpoint_url: Option<String>,
    /// Region; else from the environment, else the store is asked.
    pub region: Option<String>,
    /// Profile of the credentials.
    pub profile: Option<String>,
    /// Sends requests without a signature: public buckets.
    pub no_sign_request: bool,
    /// Names the bucket in the path and not in the host. Stores with an endpoint of their own are
    /// always asked so.
    pub force_path_style: bool,
    /// Whoever reads pays.
    pub requester_pays: bool,
    /// Time in which a request has to be answered, retries included, and in which each further
    /// piece of a body has to arrive or to be taken; 30 s if there is none.
    pub timeout: Option<Duration>,
}

/// What is needed of a store on loopback, whose port and credentials are others with each run.
#[cfg(feature = "demo")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demo {
    pub(crate) name: String,
    pub(crate) credentials: Credentials,
}

impl RemoteOptions {
    /// How to reach a store on loopback.
    #[cfg(feature = "demo")]
    pub fn of_demo(store: &DemoStore) -> Self {
        let (name, credentials) = (store.name().to_owned(), store.credentials().clone());
        Self {
            demo: Some(Demo { name, credentials }),
            bucket: store.bucket().to_owned(),
            endpoint_url: Some(store.endpoint().to_owned()),
            region: Some("us-east-1".to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn is_demo(&self) -> bool {
        self.stands_for().is_some()
    }

    /// The name of the store in all that is to outlive this mount, if its address does not.
    pub(super) fn stands_for(&self) -> Option<String> {
        #[cfg(feature = "demo")]
        return self.demo.as_ref().map(|demo| format!("demo:{}", demo.name));
        #[cfg(not(feature = "demo"))]
        None
    }
}
