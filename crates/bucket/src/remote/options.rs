//! How to reach a bucket: the options of the command line, named as those of the AWS command line.

use super::StoreKind;
use std::time::Duration;

/// How to reach a bucket, in the words of the AWS command line. Credentials are never in it: they
/// come from the environment, profiles, single sign-on, a process, a web identity, the container or
/// the machine, in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteOptions {
    /// The protocol of the store.
    pub kind: StoreKind,
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
    /// The reader pays.
    pub requester_pays: bool,
    /// Time in which a request has to be answered, retries included, and in which each further
    /// piece of a body has to arrive or to be taken; 30 s if there is none.
    pub timeout: Option<Duration>,
}
