//! Buckets as the source of a mount: their addresses, their options, and the messages for a bucket
//! that cannot be mounted.
//!
//! Options have the names of the AWS command line and of mountpoint-s3 where those have the same
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

/// How an address of a bucket begins.
const SCHEMES: [(&str, StoreKind); 3] =
    [("s3://", StoreKind::S3), ("az://", StoreKind::Azure), ("gs://", StoreKind::Google)];
/// How an address of a web server begins.
const WEB_SCHEMES: [&str; 2] = ["https://", "http://"];
/// Permission bits of files and directories, unless told otherwise.
pub(super) const FILE_MODE: u16 = 0o644;
pub(super) const DIRECTORY_MODE: u16 = 0o755;

/// Options that only a bucket has.
#[derive(Debug, Args)]
pub(crate) struct BucketArgs {
    /// Address of the store, if it is not the cloud's own, such as http://127.0.0.1:9000
    ///
    /// Of s3:// AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL in the environment mean the same, of gs://
    /// STORAGE_EMULATOR_HOST. Such a store is asked with the name of the bucket in the path.
    #[arg(long, value_name = "URL", help_heading = "Bucket options")]
    pub(crate) endpoint_url: Option<String>,

    /// Region of the bucket (default: AWS_REGION, else the store is asked)
    #[arg(long, value_name = "REGION", help_heading = "Bucket options")]
    pub(crate) region: Option<String>,

    /// Profile of the credentials in ~/.aws
    #[arg(long, value_name = "NAME", help_heading = "Bucket options")]
    pub(crate) profile: Option<String>,

    /// Ask without credentials: public buckets
    #[arg(long, help_heading = "Bucket options")]
    pub(crate) no_sign_request: bool,

    /// Name the bucket in the path of requests, and not in the host
    #[arg(long, help_heading = "Bucket options")]
    pub(crate) force_path_style: bool,

    /// Pay for the requests to a bucket whose owner does not
    #[arg(long, help_heading = "Bucket options")]
    pub(crate) requester_pays: bool,

    /// Owner of the files of a bucket, as a number (default: who mounts)
    #[arg(long, value_name = "NUMBER", help_heading = "Bucket options")]
    pub(crate) uid: Option<u32>,

    /// Group of the files of a bucket, as a number (default: of who mounts)
    #[arg(long, value_name = "NUMBER", help_heading = "Bucket options")]
    pub(crate) gid: Option<u32>,

    /// Permissions of the files of a bucket, in octal
    #[arg(
        long,
        value_name = "MODE",
        value_parser = mode,
        default_value = "644",
        help_heading = "Bucket options"
    )]
    pub(crate) file_mode: u16,

    /// Permissions of the directories of a bucket, in octal
    #[arg(
        long,
        value_name = "MODE",
        value_parser = mode,
        default_value = "755",
        help_heading = "Bucket options"
    )]
    pub(crate) dir_mode: u16,

    /// Keep modes, owners, times and symbolic links beside objects, in these words
    ///
    /// Those that other programs left there are shown; with --stage what is set is kept there.
    /// Listings do not tell of it, so each file that is shown costs one request more, and setting
    /// something of a file that is not being written copies the object inside the store.
    #[arg(
        long,
        value_enum,
        value_name = "WORDS",
        default_value_t = Words::Off,
        help_heading = "Bucket options"
    )]
    pub(crate) metadata: Words,

    /// What programs get of a bucket whose store does not answer
    ///
    /// Not with --stage.
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
pub(crate) enum Words {
    /// Nothing is looked at or kept: modes and owners are what options say, times are the store's
    Off,
    /// Those of s3fs, and of rclone for times: mode, uid, gid, mtime
    S3fs,
    /// Those of gsutil and gcsfuse: goog-reserved-file-mtime, goog-reserved-posix-mode and so on
    Gcs,
}

impl Words {
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
    /// Errors, after --origin-timeout, for all that has to be asked for
    Error,
    /// Names and attributes as they were last told, and the bytes that are cached of them; EIO at
    /// once for other bytes. What was changed meanwhile is seen once the store answers again
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
    /// The bucket of a source and its options; `None` if the source is no bucket.
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
                    let what = format!("cannot mount {text}: no bucket in it");
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
            // The request that finds the store offline still has to answer from what is known,
            // before the kernel gives up.
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
                "cannot mount: --offline stale shows what may have changed, and with a stage each \
                 opening has to ask which object it is that may be overwritten",
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

    /// Opens it at the store; the key is that of its stage.
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
                     as well; mount it without --stage to read only"
                }
                StoreKind::Azure => {
                    "writing needs the role Storage Blob Data Contributor, or a token with the \
                     permissions rwdl; mount it without --stage to read only"
                }
                StoreKind::Google => {
                    "writing needs the role Storage Object User; mount it without --stage to read \
                     only"
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
                refusal.hint("servers that want a password are not spoken to")
            }
            BucketError::NotFound { .. } if self.is_web => {
                refusal.hint("check the address; that of a directory ends in a slash")
            }
            BucketError::Unsupported { .. } if self.is_web => {
                refusal.hint("mount a file of it by its own address")
            }
            BucketError::TimedOut { .. } | BucketError::Failed { .. } if self.is_web => {
                refusal.hint("check the address, and that the server can be reached")
            }
            BucketError::NoSuchBucket { .. } => {
                refusal.hint("check its name, --region and --endpoint-url")
            }
            BucketError::NotFound { .. } => {
                refusal.hint("nothing has a key that begins so; check the prefix")
            }
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
        // As the AWS command line has it: nothing in an address is quoted.
        let quoted = source("s3://b/a%20b%2Fc").unwrap().unwrap();
        assert_eq!(quoted.origin.prefix, "a%20b%2Fc/");
        assert_eq!(source("/srv").unwrap(), None);
        assert!(source("s3://").unwrap_err().contains("s3://BUCKET"));
        assert!(source("s3:///p").unwrap_err().contains("no bucket"));
        assert!(source("ftp://host/p").unwrap_err().contains("does not speak ftp"));
    }

    #[test]
    fn an_address_that_would_lead_elsewhere_is_refused_in_words() {
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
            // Not as a line, whose words are cut at white space of any kind.
            let line = ["ogive", "mount", text, "/mnt"];
            let Command::Mount(args) = Cli::parse_from(line).command else { panic!("not mount") };
            let ttl = Duration::from_secs(1);
            let refused = BucketSource::new(&args.source, &args.bucket, ttl, None);
            let said = refused.expect_err(text).to_string();
            assert!(said.contains(why) && said.contains("cannot mount"), "{text}: {said}");
        }
        for text in ["s3://b/a\\b", "az://c/a.b/", "az://$web/p", "gs://B_1.x-y/p"] {
            assert!(source(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_typed_about_a_bucket_arrives() {
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
    fn what_is_stale_is_not_written_over() {
        assert_eq!(source("--offline stale s3://b").unwrap().unwrap().offline, Offline::Stale);
        let refusal = source("--offline stale --stage /s s3://b").unwrap_err();
        assert!(refusal.contains("which object"), "{refusal}");
    }

    #[test]
    fn each_scheme_is_a_store_of_its_kind() {
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
    fn a_web_server_is_its_address_and_is_only_read() {
        for text in ["http://h/d/", "https://h:1/f"] {
            let source = source(text).unwrap().unwrap();
            assert!(source.is_web && source.address == text);
        }
        let refusal = source("--stage /s https://h/").unwrap_err();
        assert!(refusal.contains("only read"), "{refusal}");
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
