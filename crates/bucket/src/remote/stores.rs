//! The differences between the stores: their addresses, their credentials, how they identify an
//! object, and how a request depends on it.
//!
//! | | Amazon S3 and compatible stores | Azure | Google |
//! |---|---|---|---|
//! | an object is identified by | its ETag | its ETag | its generation |
//! | ranges are copied | inside the store | through the client | through the client |
//!
//! Google's writes and deletions can depend on a generation, but not on an ETag. For Azure and
//! Google the library has no copy that depends on its source and keeps the mark of a write. So
//! those copies go through the client, and each fetch depends on the source.

use super::credentials::{Credentials, ca_bundle};
use super::stale_uploads;
use super::{RemoteOptions, variable};
use crate::http_clients::certificates;
use crate::object_metadata::{
    BLOB_TYPE, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_TYPE, LEASE,
};
use crate::{Condition, ETag, KeyRules, ObjectMetadata, PARTS_AT_ONCE, WriteMetadata};
use opendal::options::{DeleteOptions, ReaderOptions, WriteOptions};
use opendal::{Metadata, Operator, services};
use reqsign_aws_v4::Credential;
use reqsign_core::{ProvideCredentialChain, Signer};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The protocol of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// Amazon S3 and compatible stores.
    #[default]
    S3,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Google,
}

/// The connection to a bucket, without layers.
pub(super) struct Connection {
    pub(super) operator: Operator,
    pub(super) endpoint: String,
    /// For requests that the library cannot make, with the credentials to sign them; `None` if
    /// there are none.
    pub(super) signer: Option<(Signer<Credential>, Credentials)>,
}

impl StoreKind {
    /// Prepares the connection to a bucket.
    pub(super) fn connect(
        self,
        options: &RemoteOptions,
        runtime: &Runtime,
        timeout: Duration,
    ) -> std::result::Result<Connection, String> {
        match self {
            Self::S3 => s3(options, runtime, timeout),
            Self::Azure => azure(options),
            Self::Google => google(options),
        }
    }

    /// Certificate authorities to trust in addition to the system's: for S3, those of the AWS
    /// command line.
    pub(super) fn authorities(
        self,
        profile: Option<&str>,
    ) -> std::result::Result<Vec<reqwest::Certificate>, String> {
        if self != Self::S3 {
            return Ok(Vec::new());
        }
        if let Some(path) = variable(&"AWS_CA_BUNDLE") {
            return certificates("AWS_CA_BUNDLE", path.as_ref());
        }
        match ca_bundle(profile) {
            Some(path) => certificates("ca_bundle of the profile", path.as_ref()),
            None => Ok(Vec::new()),
        }
    }

    /// The rules for keys that the store keeps unchanged.
    pub fn key_rules(self) -> &'static KeyRules {
        match self {
            Self::S3 => &KeyRules::S3,
            Self::Azure => &KeyRules::AZURE,
            Self::Google => &KeyRules::GOOGLE,
        }
    }

    /// The tag that distinguishes an object from all others that had its key.
    pub(super) fn etag(self, metadata: &Metadata) -> Option<ETag> {
        match self {
            Self::S3 => metadata.etag().map(ETag::new),
            // Azure's listings omit the quotes.
            Self::Azure => metadata.etag().map(|tag| match tag.contains('"') {
                true => ETag::new(tag),
                false => ETag::new(&format!("\"{tag}\"")),
            }),
            Self::Google => metadata.version().map(|number| ETag::new(&format!("\"{number}\""))),
        }
    }

    /// The generation in an ETag that was made of one.
    fn generation(tag: &ETag) -> String {
        tag.as_str().trim_matches('"').to_owned()
    }

    /// The metadata name of a write's mark.
    pub(super) fn mark_name(self) -> &'static str {
        match self {
            // Azure's names have to be valid identifiers.
            Self::Azure => "ogivewrite",
            Self::S3 | Self::Google => "ogive-write",
        }
    }

    /// Whether the store can copy ranges into a multipart upload.
    pub(super) fn copies_inside(self) -> bool {
        self == Self::S3
    }

    pub(super) fn reading(self, expected: Option<&ETag>) -> ReaderOptions {
        let mut options = ReaderOptions::default();
        match (self, expected) {
            (_, None) => {}
            (Self::Google, Some(tag)) => options.if_version_match = Some(Self::generation(tag)),
            (_, Some(tag)) => options.if_match = Some(tag.as_str().to_owned()),
        }
        options
    }

    /// The mark and the metadata of an object.
    pub(super) fn beside(
        self,
        metadata: &Metadata,
    ) -> (Option<String>, Option<Arc<ObjectMetadata>>) {
        let mut kept = ObjectMetadata::default();
        let mut mark = None;
        for (name, value) in metadata.user_metadata().into_iter().flatten() {
            let (name, value) = (name.to_ascii_lowercase(), value.to_owned());
            let told = [BLOB_TYPE, LEASE].into_iter().find(|told| *told == name);
            match told.filter(|_| self == Self::Azure) {
                _ if name == self.mark_name() => mark = Some(value),
                Some(told) => drop(kept.headers.insert(told, value)),
                None => drop(kept.user.insert(name, value)),
            }
        }
        let words = [
            (CONTENT_TYPE, metadata.content_type()),
            (CONTENT_ENCODING, metadata.content_encoding()),
            (CONTENT_DISPOSITION, metadata.content_disposition()),
            (CACHE_CONTROL, metadata.cache_control()),
        ];
        let told = words.into_iter().filter_map(|(word, value)| Some((word, value?.to_owned())));
        kept.headers.extend(told);
        (mark, Some(Arc::new(kept)))
    }

    pub(super) fn writing(self, condition: &Condition, beside: WriteMetadata<'_>) -> WriteOptions {
        let mut options = WriteOptions { concurrent: PARTS_AT_ONCE, ..WriteOptions::default() };
        match (self, condition) {
            (_, Condition::None) => {}
            (_, Condition::Absent) => options.if_not_exists = true,
            (Self::Google, Condition::Matches(tag)) => {
                options.if_version_match = Some(Self::generation(tag));
            }
            (_, Condition::Matches(tag)) => options.if_match = Some(tag.as_str().to_owned()),
        }
        let mark = beside.mark.map(|mark| (self.mark_name().to_owned(), mark.to_owned()));
        let notes = beside.kept.into_iter().flat_map(|kept| kept.user.clone());
        let beside_it: HashMap<_, _> = notes.chain(mark).collect();
        options.user_metadata = Some(beside_it).filter(|noted| !noted.is_empty());
        let word = |word| beside.kept.and_then(|kept| kept.headers.get(word).cloned());
        options.content_type = word(CONTENT_TYPE);
        options.content_encoding = word(CONTENT_ENCODING);
        options.content_disposition = word(CONTENT_DISPOSITION);
        options.cache_control = word(CACHE_CONTROL);
        options
    }

    pub(super) fn deleting(self, expected: Option<&ETag>) -> DeleteOptions {
        let mut options = DeleteOptions::default();
        match (self, expected) {
            (_, None) => {}
            (Self::Google, Some(tag)) => options.if_version_match = Some(Self::generation(tag)),
            (_, Some(tag)) => options.if_match = Some(tag.as_str().to_owned()),
        }
        options
    }
}

fn as_text<T>(made: opendal::Result<T>) -> std::result::Result<T, String> {
    made.map_err(|error| error.to_string())
}

fn s3(
    options: &RemoteOptions,
    runtime: &Runtime,
    timeout: Duration,
) -> std::result::Result<Connection, String> {
    let endpoint = options
        .endpoint_url
        .clone()
        .or_else(|| ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].iter().find_map(variable))
        .unwrap_or_else(|| "https://s3.amazonaws.com".to_owned());
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    let is_amazon = endpoint.contains(".amazonaws.com");
    let region = options
        .region
        .clone()
        .or_else(|| ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(variable))
        .or_else(|| {
            let ask = services::S3::detect_region(&endpoint, &options.bucket);
            let ask = async { tokio::time::timeout(timeout, ask).await.ok().flatten() };
            is_amazon.then(|| runtime.block_on(ask)).flatten()
        })
        .unwrap_or_else(|| "us-east-1".to_owned());
    let mut builder =
        services::S3::default().bucket(&options.bucket).endpoint(&endpoint).region(&region);
    if is_amazon && !options.force_path_style && !options.bucket.contains('.') {
        builder = builder.enable_virtual_host_style();
    }
    if options.no_sign_request {
        builder = builder.skip_signature();
    }
    if options.requester_pays {
        builder = builder.enable_request_payer();
    }
    let profile = options.profile.as_deref();
    let is_signed = !options.no_sign_request;
    let credentials = Credentials::new(profile);
    if is_signed {
        let chain = ProvideCredentialChain::new().push(credentials.fresh());
        builder = builder.credential_provider_chain(chain);
    }
    let signer =
        is_signed.then(|| (stale_uploads::signer(&region, credentials.fresh()), credentials));
    Ok(Connection { operator: as_text(Operator::new(builder))?, endpoint, signer })
}

fn azure(options: &RemoteOptions) -> std::result::Result<Connection, String> {
    let connection = variable(&"AZURE_STORAGE_CONNECTION_STRING");
    let mut builder = match &connection {
        Some(text) => as_text(services::Azblob::from_connection_string(text))?,
        None => services::Azblob::default(),
    };
    let account = ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"].iter().find_map(variable);
    let endpoint = match (&options.endpoint_url, &account, &connection) {
        (Some(endpoint), _, _) => Some(endpoint.trim_end_matches('/').to_owned()),
        (None, _, Some(text)) => connected_to(text),
        (None, Some(account), None) => Some(format!("https://{account}.blob.core.windows.net")),
        (None, None, None) => None,
    };
    let endpoint = endpoint.ok_or(
        "the storage account is unknown: set AZURE_STORAGE_ACCOUNT or \
         AZURE_STORAGE_CONNECTION_STRING, or give --endpoint-url",
    )?;
    builder = builder.container(&options.bucket).endpoint(&endpoint);
    if let Some(account) = &account {
        builder = builder.account_name(account);
    }
    if let Some(key) = ["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"].iter().find_map(variable)
    {
        builder = builder.account_key(&key);
    }
    if let Some(token) = variable(&"AZURE_STORAGE_SAS_TOKEN") {
        builder = builder.sas_token(token.trim_start_matches('?'));
    }
    if options.no_sign_request {
        builder = builder.skip_signature();
    }
    Ok(Connection { operator: as_text(Operator::new(builder))?, endpoint, signer: None })
}

/// The endpoint of a connection string.
fn connected_to(text: &str) -> Option<String> {
    let field = |name: &str| {
        let mut fields = text.split(';').filter_map(|field| field.split_once('='));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    if let Some(endpoint) = field("BlobEndpoint") {
        return Some(endpoint.trim_end_matches('/').to_owned());
    }
    let scheme = field("DefaultEndpointsProtocol").unwrap_or("https");
    let suffix = field("EndpointSuffix").unwrap_or("core.windows.net");
    Some(format!("{scheme}://{}.blob.{suffix}", field("AccountName")?))
}

fn google(options: &RemoteOptions) -> std::result::Result<Connection, String> {
    let emulator = variable(&"STORAGE_EMULATOR_HOST").map(|host| match host.contains("://") {
        true => host,
        false => format!("http://{host}"),
    });
    let endpoint = options
        .endpoint_url
        .clone()
        .or_else(|| emulator.clone())
        .unwrap_or_else(|| "https://storage.googleapis.com".to_owned());
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    let mut builder = services::Gcs::default().bucket(&options.bucket).endpoint(&endpoint);
    // Emulators have no accounts.
    if options.no_sign_request || (emulator.is_some() && options.endpoint_url.is_none()) {
        builder = builder.skip_signature().disable_vm_metadata().disable_config_load();
    }
    Ok(Connection { operator: as_text(Operator::new(builder))?, endpoint, signer: None })
}

/// Each store's conditions must be set in the options that the library supports for it.
#[cfg(test)]
mod tests {
    use super::*;
    use opendal::MetadataBuilder;

    #[test]
    fn a_connection_string_has_the_endpoint() {
        let local = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=k==;\
                     BlobEndpoint=http://127.0.0.1:1/a/;";
        assert_eq!(connected_to(local).as_deref(), Some("http://127.0.0.1:1/a"));
        let cloud = "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k==;\
                     EndpointSuffix=core.chinacloudapi.cn";
        let expected = "https://a.blob.core.chinacloudapi.cn";
        assert_eq!(connected_to(cloud).as_deref(), Some(expected));
        assert_eq!(connected_to("AccountKey=k"), None);
    }

    #[test]
    fn requests_use_the_conditions_of_each_store() {
        let tag = ETag::new("\"7\"");
        let matches = Condition::Matches(tag.clone());
        for kind in [StoreKind::S3, StoreKind::Azure] {
            assert_eq!(kind.reading(Some(&tag)).if_match.as_deref(), Some("\"7\""));
            assert_eq!(
                kind.writing(&matches, WriteMetadata::NONE).if_match.as_deref(),
                Some("\"7\"")
            );
            assert_eq!(kind.deleting(Some(&tag)).if_match.as_deref(), Some("\"7\""));
        }
        let google = StoreKind::Google;
        assert_eq!(google.reading(Some(&tag)).if_version_match.as_deref(), Some("7"));
        assert_eq!(
            google.writing(&matches, WriteMetadata::NONE).if_version_match.as_deref(),
            Some("7")
        );
        assert_eq!(google.deleting(Some(&tag)).if_version_match.as_deref(), Some("7"));
        assert!(google.writing(&Condition::Absent, WriteMetadata::NONE).if_not_exists);
    }

    #[test]
    fn a_listing_and_a_head_of_azure_give_an_object_the_same_etag() {
        let named = |tag: &str| {
            let mut metadata = MetadataBuilder::file(0);
            metadata.etag(tag);
            StoreKind::Azure.etag(&metadata.build())
        };
        assert_eq!(named("0x8D"), named("\"0x8D\""));
    }
}
