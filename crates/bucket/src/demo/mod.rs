//! A store on loopback, out of a directory, to try buckets with and to test against: S3's protocol
//! with its conditions honoured, one bucket, kept by [`objects`], answered by [`service`].
//!
//! # Invariants
//! - It listens on 127.0.0.1 alone, at a port of the system's choice, and answers who signs with the
//!   credentials of this run. They are random, and whoever may read `DIR/client.env` has them.
//! - A directory belongs to one store at a time, which a lock of its file `ogive-demo` says. One
//!   that is not empty and has no such file is somebody's, and is not touched.
//!
//! # Threads
//! Two named `demo_store` that sleep in epoll_wait(2), and more while files are read or written, up
//! to 16.

mod objects;
mod service;

use crate::{BucketError, Result, private};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use objects::{Objects, random};
use rustix::fs::{FlockOperation, flock};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use service::Service;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// The one bucket there is.
const BUCKET: &str = "demo";
/// The file that makes a directory a store's, and has its name in it.
const MARK: &str = "ogive-demo";
/// The file that tells other clients how to speak to it.
const CLIENT: &str = "client.env";
/// Connections that are served at once; others wait.
const CONNECTIONS_MAX: usize = 256;

/// Keys that are made for one run. Debug does not show them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// A store that answers on loopback until it is dropped.
#[derive(Debug)]
pub struct DemoStore {
    directory: PathBuf,
    endpoint: String,
    name: String,
    credentials: Credentials,
    /// Taken by [`Drop`] only.
    runtime: Option<Runtime>,
    /// Locked as long as it is open.
    _mark: File,
}

impl DemoStore {
    /// Starts the store in a directory, which is made if there is none.
    ///
    /// # Errors
    /// [`BucketError::Failed`] if the directory is somebody else's or cannot be used, if another
    /// store has it, or if nothing can listen on loopback.
    pub fn start(directory: &Path) -> Result<Self> {
        Self::serve(directory).map_err(|error| BucketError::Failed {
            key: directory.display().to_string(),
            message: format!("no store can be served out of it: {error}"),
        })
    }

    fn serve(directory: &Path) -> io::Result<Self> {
        let (mark, name) = take(directory)?;
        let objects = Arc::new(Objects::open(directory)?);
        let credentials = Credentials { access_key: random()?, secret_key: random()? };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(16)
            .thread_name("demo_store")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let mut builder = S3ServiceBuilder::new(Service { objects, bucket: BUCKET });
        let Credentials { access_key, secret_key } = credentials.clone();
        builder.set_auth(SimpleAuth::from_single(access_key, secret_key));
        let service = builder.build();
        runtime.spawn(async move {
            let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
            while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
                let Ok((socket, _)) = listener.accept().await else {
                    // No descriptors: those that are open have to end first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(socket), service.clone());
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        log::debug!("a connection to the demo store ended: {error}");
                    }
                    drop(permit);
                });
            }
        });
        let store = Self {
            directory: directory.to_owned(),
            endpoint,
            name,
            credentials,
            runtime: Some(runtime),
            _mark: mark,
        };
        store.tell()?;
        Ok(store)
    }

    /// Writes down how another client speaks to it, for this user alone.
    fn tell(&self) -> io::Result<()> {
        let path = self.directory.join(CLIENT);
        // Not into one that others have open.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private::create_new(&path)?;
        let Credentials { access_key, secret_key } = &self.credentials;
        write!(
            file,
            "# For other S3 clients while the mount is there; the bucket is s3://{BUCKET}\n\
             export AWS_ENDPOINT_URL={}\n\
             export AWS_ACCESS_KEY_ID={access_key}\n\
             export AWS_SECRET_ACCESS_KEY={secret_key}\n\
             export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1\n",
            self.endpoint
        )
    }

    /// Where it listens, such as `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The name of its only bucket.
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// What stays the same of it over all runs, as its port does not.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory it keeps its objects in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

impl Drop for DemoStore {
    fn drop(&mut self) {
        // The credentials in it are worth nothing from now on.
        let _ = fs::remove_file(self.directory.join(CLIENT));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Makes a directory this store's, or finds that it is, and returns its name.
fn take(directory: &Path) -> io::Result<(File, String)> {
    private::create_directories(directory)?;
    let path = directory.join(MARK);
    if !path.exists() && fs::read_dir(directory)?.next().is_some() {
        return Err(io::Error::other(format!(
            "it is not empty and has no file {MARK}, so it is something else; name a directory \
             that is empty or not there yet"
        )));
    }
    let mut options = private::options();
    let mut mark = options.read(true).write(true).create(true).truncate(false).open(&path)?;
    flock(&mark, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| io::Error::other("another mount serves it; unmount that one first"))?;
    let mut name = String::new();
    (&mut mark).take(64).read_to_string(&mut name)?;
    let known = name.trim();
    if known.len() == 32 && known.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok((mark, known.to_owned()));
    }
    if !known.is_empty() {
        return Err(io::Error::other(format!("its file {MARK} is not one of ours")));
    }
    let name = random()?;
    mark.write_all(name.as_bytes())?;
    mark.sync_all()?;
    Ok((mark, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Bucket as _, Condition, Promises, RemoteBucket, RemoteOptions, WriteMetadata, probe,
    };
    use bytes::Bytes;
    use std::ops::ControlFlow;

    fn remote(store: &DemoStore) -> RemoteBucket {
        RemoteBucket::new(&RemoteOptions::of_demo(store)).unwrap()
    }

    fn read(bucket: &RemoteBucket, key: &str, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bucket.get(key, range, None, &mut |piece| {
            bytes.extend_from_slice(&piece);
            ControlFlow::Continue(())
        })?;
        Ok(bytes)
    }

    #[test]
    fn it_honours_every_condition_that_a_mount_asks_for() {
        let directory = tempfile::tempdir().unwrap();
        let store = DemoStore::start(&directory.path().join("new")).unwrap();
        assert_eq!(probe(&remote(&store), ""), Ok(Promises::ALL));
    }

    #[test]
    fn an_open_object_is_that_object_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let store = DemoStore::start(directory.path()).unwrap();
        let bucket = remote(&store);
        let put = |text: &'static str| {
            bucket
                .put(
                    "k",
                    Bytes::from_static(text.as_bytes()),
                    &Condition::None,
                    WriteMetadata::NONE,
                )
                .unwrap()
        };
        let old = put("old").etag;
        put("new");
        let answer = bucket.get("k", 0..3, old.as_ref(), &mut |_| ControlFlow::Continue(()));
        assert!(matches!(answer, Err(BucketError::ConditionFailed { .. })), "{answer:?}");
    }

    #[test]
    fn what_was_put_is_there_for_the_next_process_under_the_same_name() {
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number >> 8) as u8).collect();
        let store = DemoStore::start(directory.path()).unwrap();
        let (name, identity) = (store.name().to_owned(), remote(&store).identity());
        let body = Bytes::from(bytes.clone());
        remote(&store)
            .put("d/big", body, &Condition::Absent, WriteMetadata::marked("mark"))
            .unwrap();
        drop(store);
        assert!(!directory.path().join(CLIENT).exists());
        let store = DemoStore::start(directory.path()).unwrap();
        let bucket = remote(&store);
        assert_eq!((store.name(), bucket.identity()), (&*name, identity));
        assert_eq!(read(&bucket, "d/big", 0..3_000_000).unwrap(), bytes);
        assert_eq!(read(&bucket, "d/big", 1_000_000..1_000_010).unwrap(), bytes[1_000_000..][..10]);
        assert_eq!(bucket.head("d/big").unwrap().mark.as_deref(), Some("mark"));
    }

    #[test]
    fn a_directory_is_one_store_s_and_nobody_else_s() {
        let directory = tempfile::tempdir().unwrap();
        let store = DemoStore::start(directory.path()).unwrap();
        let second = DemoStore::start(directory.path()).unwrap_err().to_string();
        assert!(second.contains("unmount that one first"), "{second}");
        drop(store);
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("letter"), "dear").unwrap();
        let refusal = DemoStore::start(home.path()).unwrap_err().to_string();
        assert!(refusal.contains("is something else"), "{refusal}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn nobody_is_answered_without_the_credentials_of_this_run() {
        let directory = tempfile::tempdir().unwrap();
        let store = DemoStore::start(directory.path()).unwrap();
        assert!(store.endpoint().starts_with("http://127.0.0.1:"));
        for options in [
            RemoteOptions { no_sign_request: true, demo: None, ..RemoteOptions::of_demo(&store) },
            RemoteOptions {
                demo: Some(crate::remote::Demo {
                    name: store.name().to_owned(),
                    credentials: Credentials {
                        access_key: store.credentials.access_key.clone(),
                        secret_key: "guessed".into(),
                    },
                }),
                ..RemoteOptions::of_demo(&store)
            },
        ] {
            let answer = RemoteBucket::new(&options).unwrap().head("k");
            assert!(matches!(answer, Err(BucketError::Denied { .. })), "{answer:?}");
        }
    }
}
