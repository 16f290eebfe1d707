//! Buckets as the source of a mount: their addresses, their options, and the error messages.
//!
//! Options have the names of the AWS command line and of mountpoint-s3 if they have the same
//! meaning. Credentials are never options.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ogive_bucket::{
    Bucket, BucketError, BucketOrigin, Convention, OriginOptions, RemoteBucket, RemoteOptions,
    StoreKind, WebBucket,
};
use ogive_l2::KeySource;

use super::bucket_options::{
    refuse_of_amazon, refuse_of_stores, refuse_options, refuse_other_address, refuse_other_prefix,
    refuse_other_schemes,
};
use super::cost::CostArgs;
use super::stage::{self, Stage, StageArgs};
use crate::exit::{self, Refusal};

/// The schemes of buckets.
const SCHEMES: [(&str, StoreKind); 3] =
    [("s3://", StoreKind::S3), ("az://", StoreKind::Azure), ("gs://", StoreKind::Google)];
/// The schemes of web servers.
const WEB_SCHEMES: [&str; 2] = ["https://", "http://"];
/// The default permission bits of files and directories.
pub(super) const FILE_MODE: u16 = 0o644;
pub(super) const DIRECTORY_MODE: u16 = 0o755;

/// The options of buckets.
#[derive(Debug, Args)]
pub(crate) struct BucketArgs {
    /// Address of the store, such as http://127.0.0.1:9000 (default: the cloud's own)
    ///
    /// AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL in the environment set it for s3://,
    /// STORAGE_EMULATOR_HOST for gs://. Requests to such a store have the name of the bucket in
    /// their path.
    #[arg(long, value_name = "URL", help_heading = "Bucket options")]
    pub(crate) endpoint_url: Option<String>,

    /// Region of the bucket (default: AWS_REGION, else the store is asked)
    #[arg(long, value_name = "REGION", help_heading = "Bucket options")]
    pub(crate) region: Option<String>,

    /// Profile in ~/.aws with the credentials
    #[arg(long, value_name = "NAME", help_heading = "Bucket options")]
    pub(crate) profile: Option<String>,

    /// Send unsigned requests, for public buckets
    #[arg(long, help_heading = "Bucket options")]
    pub(crate) no_sign_request: bool,

    /// Put the name of the bucket into the path of requests, not into the host
    #[arg(long, help_heading = "Bucket options")]
    pub(crate) force_path_style: bool,

    /// Pay for the requests to a requester-pays bucket
    #[arg(long, help_heading = "Bucket options")]
    pub(crate) requester_pays: bool,

    /// Owner of the bucket's files, as a number (default: the mounting user)
    #[arg(long, value_name = "NUMBER", help_heading = "Bucket options")]
    pub(crate) uid: Option<u32>,

    /// Group of the bucket's files, as a number (default: the mounting user's)
    #[arg(long, value_name = "NUMBER", help_heading = "Bucket options")]
    pub(crate) gid: Option<u32>,

    /// Permissions of the bucket's files, in octal
    #[arg(
        long,
        value_name = "MODE",
        value_parser = mode,
        default_value = "644",
        help_heading = "Bucket options"
    )]
    pub(crate) file_mode: u16,

    /// Permissions of the bucket's directories, in octal
    #[arg(
        long,
        value_name = "MODE",
        value_parser = mode,
        default_value = "755",
        help_heading = "Bucket options"
    )]
    pub(crate) dir_mode: u16,

    /// Store modes, owners, times and symbolic links in the metadata of objects
    ///
    /// Metadata of other programs are shown; with --stage, changes are stored as well. Listings do
    /// not include metadata, so each file that is shown costs one more request. A change to a file
    /// that is not being written copies the object inside the store.
    #[arg(
        long,
        value_enum,
        value_name = "CONVENTION",
        default_value_t = MetadataConvention::Off,
        help_heading = "Bucket options"
    )]
    pub(crate) metadata: MetadataConvention,

    /// Behaviour while the store does not answer
    ///
    /// Cannot be combined with --stage.
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value_t = Offline::Error,
        help_heading = "Bucket options"
    )]
    pub(crate) offline: Offline,

    #[command(flatten)]
    pub(crate) cost: CostArgs,

    #[command(flatten)]
    pub(crate) stage: StageArgs,
}

/// The choices of `--metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetadataConvention {
    /// Neither read nor store metadata: options set modes and owners, the store sets times
    Off,
    /// As s3fs does, and rclone for times: mode, uid, gid, mtime
    S3fs,
    /// As gsutil and gcsfuse do: goog-reserved-file-mtime, goog-reserved-posix-mode and so on
    Gcs,
}

impl MetadataConvention {
    fn convention(self) -> Convention {
        match self {
            Self::Off => Convention::Off,
            Self::S3fs => Convention::S3fs,
            Self::Gcs => Convention::Google,
        }
    }
}

/// The choices of `--offline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Offline {
    /// An error for everything that needs a request, after --origin-timeout
    Error,
    /// The last known names and attributes, and cached bytes; EIO at once for other bytes. Changes
    /// in the bucket appear once the store answers again
    Stale,
}

fn mode(text: &str) -> Result<u16, String> {
    u16::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "not permissions in octal, such as 644".to_owned())
}

/// A bucket to mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketSource {
    /// Its name in messages.
    address: String,
    remote: RemoteOptions,
    origin: OriginOptions,
    offline: Offline,
    /// The budget of its requests.
    cost: CostArgs,
    /// Whether it is a web server, which has only an address.
    is_web: bool,
    /// The stage, which makes it writable.
    pub(crate) stage: Option<Stage>,
}

/// A bucket that answers.
pub(crate) enum OpenBucket {
    Store(BucketOrigin<RemoteBucket>),
    Web(BucketOrigin<WebBucket>),
}

impl BucketSource {
    /// The bucket of a source and its options; `None` if the source is not a bucket.
    pub(crate) fn new(
        source: &Path,
        args: &BucketArgs,
        metadata_ttl: Duration,
        timeout: Option<Duration>,
    ) -> Result<Option<Self>, Refusal> {
        let text = source.to_string_lossy();
        let known = SCHEMES.iter().find(|(scheme, _)| text.starts_with(scheme));
        let (kind, bucket, prefix) = match known {
            None if WEB_SCHEMES.iter().any(|scheme| text.starts_with(scheme)) => {
                refuse_of_stores(&text, args)?;
                refuse_other_address(&text)?;
                (StoreKind::S3, "", "")
            }
            None => {
                refuse_other_schemes(&text)?;
                refuse_options(args)?;
                return Ok(None);
            }
            Some((scheme, kind)) => {
                let address = &text[scheme.len()..];
                let (bucket, prefix) = address.split_once('/').unwrap_or((address, ""));
                if bucket.is_empty() || source.to_str().is_none() {
                    let what = format!("cannot mount {text}: it names no bucket");
                    return Err(Refusal::new(exit::USAGE, what)
                        .hint(format!("write {scheme}BUCKET or {scheme}BUCKET/PREFIX")));
                }
                refuse_of_amazon(scheme, *kind, args)?;
                refuse_other_prefix(&text, *kind, (bucket, prefix))?;
                (*kind, bucket, prefix)
            }
        };
        let is_cut = prefix.is_empty() || prefix.ends_with('/');
        let prefix = format!("{prefix}{}", if is_cut { "" } else { "/" });
        let remote = RemoteOptions {
            kind,
            bucket: bucket.to_owned(),
            endpoint_url: args.endpoint_url.clone(),
            region: args.region.clone(),
            profile: args.profile.clone(),
            no_sign_request: args.no_sign_request,
            force_path_style: args.force_path_style,
            requester_pays: args.requester_pays,
            // The request that detects the outage has to return known answers before the kernel
            // gives up.
            timeout: match args.offline {
                Offline::Stale => timeout.map(|timeout| timeout * 3 / 4),
                Offline::Error => timeout,
            },
        };
        let origin = OriginOptions {
            prefix,
            metadata_ttl,
            user: args.uid.unwrap_or_else(|| rustix::process::getuid().as_raw()),
            group: args.gid.unwrap_or_else(|| rustix::process::getgid().as_raw()),
            file_mode: args.file_mode,
            directory_mode: args.dir_mode,
            convention: args.metadata.convention(),
        };
        let (offline, cost) = (args.offline, args.cost.clone());
        if offline == Offline::Stale && args.stage.stage.is_some() {
            return Err(Refusal::new(
                exit::USAGE,
                "cannot mount: --offline stale shows names that may be outdated, but with a stage \
                 each open must find out which object it may overwrite",
            )
            .hint("leave out --offline or --stage"));
        }
        let (address, is_web) = (text.into_owned(), known.is_none());
        Ok(Some(Self { address, remote, origin, offline, cost, is_web, stage: None }))
    }

    /// Sets the budget, and whether stale answers are shown.
    fn bounded<B: Bucket>(&self, mut origin: BucketOrigin<B>) -> Result<BucketOrigin<B>, Refusal> {
        let prices = self.cost.prices(&origin.bucket().identity().endpoint)?;
        origin.set_budget(prices, self.cost.budget());
        if self.offline == Offline::Stale {
            origin.show_stale();
        }
        Ok(origin)
    }

    /// Opens the bucket; `key` is that of its stage.
    pub(crate) fn open(&self, key: &KeySource) -> Result<OpenBucket, Refusal> {
        let refusal = |error: BucketError| self.refusal(&error);
        if self.is_web {
            let bucket = WebBucket::open(&self.address, self.remote.timeout).map_err(refusal)?;
            let origin = BucketOrigin::open(bucket, self.origin.clone()).map_err(refusal)?;
            return Ok(OpenBucket::Web(self.bounded(origin)?));
        }
        Ok(OpenBucket::Store(self.bounded(self.open_store(key)?)?))
    }

    fn open_store(&self, key: &KeySource) -> Result<BucketOrigin<RemoteBucket>, Refusal> {
        let refusal = |error: BucketError| self.refusal(&error);
        let bucket = RemoteBucket::new(&self.remote).map_err(refusal)?;
        let Some(stage) = &self.stage else {
            return BucketOrigin::open(bucket, self.origin.clone()).map_err(refusal);
        };
        let (prefix, origin) = (&self.origin.prefix, self.origin.clone());
        let source = BucketOrigin::<RemoteBucket>::source(&bucket.identity(), prefix);
        let mut opened = stage.open(&source, key)?;
        stage.prepare(&bucket, prefix, &mut opened).map_err(|error| match error {
            BucketError::Denied { .. } => self.refusal(&error).hint(match self.remote.kind {
                StoreKind::S3 => {
                    "writing needs s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload \
                     as well; mount without --stage for read-only access"
                }
                StoreKind::Azure => {
                    "writing needs the role Storage Blob Data Contributor, or a token with the \
                     permissions rwdl; mount without --stage for read-only access"
                }
                StoreKind::Google => {
                    "writing needs the role Storage Object User; mount without --stage for \
                     read-only access"
                }
            }),
            error => self.refusal(&error),
        })?;
        BucketOrigin::open_writable(bucket, origin, opened, stage.options())
            .map_err(|error| stage::refusal(&error, |error| self.refusal(error)))
    }

    fn refusal(&self, error: &BucketError) -> Refusal {
        let text = format!("cannot mount {}: {error}", self.address);
        let refusal = Refusal::new(exit::SOURCE, text);
        match error {
            BucketError::Denied { .. } if self.is_web => {
                refusal.hint("servers that require a password are not supported")
            }
            BucketError::NotFound { .. } if self.is_web => {
                refusal.hint("check the address; a directory's ends in a slash")
            }
            BucketError::Unsupported { .. } if self.is_web => {
                refusal.hint("mount one of its files by the file's address")
            }
            BucketError::TimedOut { .. } | BucketError::Failed { .. } if self.is_web => {
                refusal.hint("check the address, and that the server can be reached")
            }
            BucketError::NoSuchBucket { .. } => {
                refusal.hint("check its name, --region and --endpoint-url")
            }
            BucketError::NotFound { .. } => refusal.hint("no key begins with it; check the prefix"),
            BucketError::Denied { .. } => refusal.hint(match self.remote.kind {
                StoreKind::S3 => {
                    "check that there are credentials (environment, --profile), that they have not \
                     expired, and that they allow s3:ListBucket; a public bucket needs \
                     --no-sign-request"
                }
                StoreKind::Azure => {
                    "check that there are credentials (AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, \
                     the identity of the machine) and that they may list; a public container needs \
                     --no-sign-request"
                }
                StoreKind::Google => {
                    "check that there are credentials (GOOGLE_APPLICATION_CREDENTIALS, gcloud auth \
                     application-default login, the machine) and that they may list; a public \
                     bucket needs --no-sign-request"
                }
            }),
            BucketError::TimedOut { .. } | BucketError::Failed { .. } => {
                refusal.hint("check that the store can be reached, and --endpoint-url")
            }
            _ => refusal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn source(line: &str) -> Result<Option<BucketSource>, String> {
        let line = format!("ogive mount {line} /mnt");
        let cli = Cli::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        let Command::Mount(args) = cli.command else { panic!("not mount") };
        BucketSource::new(&args.source, &args.bucket, Duration::from_secs(1), None)
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_bucket_is_written_as_the_aws_command_line_does() {
        for (text, bucket, prefix) in [
            ("s3://b", "b", ""),
            ("s3://b/", "b", ""),
            ("s3://b/p", "b", "p/"),
            ("s3://b/p/q/", "b", "p/q/"),
        ] {
            let source = source(text).unwrap().unwrap();
            assert_eq!((&*source.remote.bucket, &*source.origin.prefix), (bucket, prefix));
        }
        // Like in the AWS command line, nothing in an address is percent-encoded.
        let quoted = source("s3://b/a%20b%2Fc").unwrap().unwrap();
        assert_eq!(quoted.origin.prefix, "a%20b%2Fc/");
        assert_eq!(source("/srv").unwrap(), None);
        assert!(source("s3://").unwrap_err().contains("s3://BUCKET"));
        assert!(source("s3:///p").unwrap_err().contains("names no bucket"));
        assert!(source("ftp://host/p").unwrap_err().contains("does not support ftp"));
    }

    #[test]
    fn an_address_that_would_change_is_refused_with_a_reason() {
        for (text, why) in [
            ("s3://b//", "an empty part"),
            ("s3://b/p//", "an empty part"),
            ("s3://b/p///", "an empty part"),
            ("s3://b//p", "an empty part"),
            ("s3://b/p//q", "an empty part"),
            ("gs://b/p/../q", "a part . or .."),
            ("s3://b/.", "a part . or .."),
            ("s3://b/./p/", "a part . or .."),
            ("az://c/a\\b", "a backslash"),
            ("az://c/a./b", "a dot at the end"),
            ("s3://b/\u{a0}p", "white space"),
            ("s3://../p", "cannot be the name of a bucket"),
            ("s3://./p", "cannot be the name of a bucket"),
            ("s3://b?x/p", "cannot be the name of a bucket"),
            ("s3://b%2Fc/p", "cannot be the name of a bucket"),
            ("az://a\\b/p", "cannot be the name of a bucket"),
            ("https://host/a\\b", "a backslash"),
        ] {
            // Do not split this at white space, which some addresses contain.
            let line = ["ogive", "mount", text, "/mnt"];
            let Command::Mount(args) = Cli::parse_from(line).command else { panic!("not mount") };
            let ttl = Duration::from_secs(1);
            let refused = BucketSource::new(&args.source, &args.bucket, ttl, None);
            let error = refused.expect_err(text).to_string();
            assert!(error.contains(why) && error.contains("cannot mount"), "{text}: {error}");
        }
        for text in ["s3://b/a\\b", "az://c/a.b/", "az://$web/p", "gs://B_1.x-y/p"] {
            assert!(source(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn options_of_a_bucket_are_passed_on() {
        let source = source(
            "--endpoint-url http://h:1 --region r --profile p --no-sign-request \
             --force-path-style --requester-pays --uid 7 --gid 8 --file-mode 600 --dir-mode 700 \
             s3://b",
        );
        let source = source.unwrap().unwrap();
        let expected = RemoteOptions {
            kind: StoreKind::S3,
            bucket: "b".into(),
            endpoint_url: Some("http://h:1".into()),
            region: Some("r".into()),
            profile: Some("p".into()),
            no_sign_request: true,
            force_path_style: true,
            requester_pays: true,
            ..RemoteOptions::default()
        };
        assert_eq!(source.remote, expected);
        let origin = source.origin;
        assert_eq!((origin.user, origin.group), (7, 8));
        assert_eq!((origin.file_mode, origin.directory_mode), (0o600, 0o700));
    }

    #[test]
    fn stale_answers_and_a_stage_exclude_each_other() {
        assert_eq!(source("--offline stale s3://b").unwrap().unwrap().offline, Offline::Stale);
        let refusal = source("--offline stale --stage /s s3://b").unwrap_err();
        assert!(refusal.contains("which object"), "{refusal}");
    }

    #[test]
    fn each_scheme_selects_its_store() {
        for (text, kind) in
            [("s3://b", StoreKind::S3), ("az://b", StoreKind::Azure), ("gs://b", StoreKind::Google)]
        {
            assert_eq!(source(text).unwrap().unwrap().remote.kind, kind);
        }
        for scheme in ["az", "gs"] {
            for option in ["--region r", "--profile p", "--force-path-style", "--requester-pays"] {
                let refusal = source(&format!("{option} {scheme}://b")).unwrap_err();
                assert!(refusal.contains("is for s3://"), "{refusal}");
            }
        }
    }

    #[test]
    fn a_web_server_has_only_an_address_and_is_read_only() {
        for text in ["http://h/d/", "https://h:1/f"] {
            let source = source(text).unwrap().unwrap();
            assert!(source.is_web && source.address == text);
        }
        let refusal = source("--stage /s https://h/").unwrap_err();
        assert!(refusal.contains("read-only"), "{refusal}");
        let refusal = source("--region r https://h/").unwrap_err();
        assert!(refusal.contains("--region is for buckets"), "{refusal}");
    }

    #[test]
    fn options_of_buckets_are_refused_for_a_directory() {
        for option in [
            "--endpoint-url http://h",
            "--region r",
            "--profile p",
            "--no-sign-request",
            "--force-path-style",
            "--requester-pays",
            "--uid 1",
            "--gid 1",
            "--file-mode 600",
            "--dir-mode 700",
            "--metadata s3fs",
            "--offline stale",
            "--origin-requests-max 9",
            "--origin-budget 2",
            "--origin-prices /f",
            "--stage /s",
            "--close journal",
            "--rename-max 7",
            "--chmod ignore",
        ] {
            let refusal = source(&format!("{option} /srv")).unwrap_err();
            assert!(refusal.contains("is for buckets"), "{refusal}");
        }
        assert!(source("--file-mode 999 s3://b").unwrap_err().contains("octal"));
    }
}
