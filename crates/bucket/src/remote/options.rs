//! The options of a connection to a bucket, with the names of the AWS command line.

use super::StoreKind;
use std::time::Duration;

/// The options of a connection to a bucket, with the names of the AWS command line. They never
/// include credentials. Those come from the environment, profiles, single sign-on, a process, a web
/// identity, the container or the instance, in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteOptions {
    /// The protocol of the store.
    pub kind: StoreKind,
    /// Name of the bucket.
    pub bucket: String,
    /// Address of the store, with its scheme; Amazon's by default.
    pub endpoint_url: Option<String>,
    /// Region; by default from the environment, else requested from the store.
    pub region: Option<String>,
    /// Profile of the credentials.
    pub profile: Option<String>,
    /// Sends unsigned requests, for public buckets.
    pub no_sign_request: bool,
    /// Puts the bucket's name into the path and not into the host. This is always done for stores
    /// with their own endpoint.
    pub force_path_style: bool,
    /// The reader pays for the requests.
    pub requester_pays: bool,
    /// Timeout of a request, retries included, and of each further piece of a body; 30 s by
    /// default.
    pub timeout: Option<Duration>,
}
