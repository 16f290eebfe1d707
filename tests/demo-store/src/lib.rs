//! An S3 store on loopback that keeps its objects in a directory: to try buckets without an
//! account, and for tests. `object_files` stores the objects of one bucket, `service` answers S3
//! requests and honours their conditions.
//!
//! # Invariants
//! - It listens on 127.0.0.1 only, and requires requests to be signed with the credentials of this
//!   run. Those are random; `DIR/client.env`, readable only by its owner, has them.
//! - A directory belongs to one store at a time: the store locks the file `ogive-demo` in it. A
//!   directory that has other files but not this one is refused and stays unchanged.
//! - The port is the same in each run, unless another program uses it: the stage of a mount belongs
//!   to one address.
//! - It has no knowledge of mounts and buckets, so the tests of any crate may use it.
//!
//! # Threads
//! Two, named `demo_store`, sleep in epoll_wait(2). Up to 16 more read and write files.

mod object_files;
mod service;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use object_files::{Objects, random};
use rustix::fs::{FlockOperation, flock};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use service::Service;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// The only bucket.
const BUCKET: &str = "demo";
/// The file that marks a directory as a store's. It holds the port of the last run.
const MARK: &str = "ogive-demo";
/// The file with the variables that an S3 client needs.
const CLIENT: &str = "client.env";
/// How many connections are served at once; others wait.
const CONNECTIONS_MAX: usize = 256;
/// How long the end of a store waits for work in progress.
const SHUTDOWN_MAX: Duration = Duration::from_secs(5);

/// A store that answers on loopback until it is dropped.
#[derive(Debug)]
pub struct DemoStore {
    directory: PathBuf,
    endpoint: String,
    access_key: String,
    secret_key: String,
    /// Only [`Drop`] takes it.
    runtime: Option<Runtime>,
    /// Locked while it is open.
    _mark: File,
}

impl DemoStore {
    /// Starts the store in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// The directory has other files or cannot be used, another store serves it, or no port on
    /// loopback is free.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let (mut mark, port) = take(directory)?;
        let objects = Arc::new(Objects::open(directory)?);
        let (access_key, secret_key) = (random()?, random()?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(16)
            .thread_name("demo_store")
            .enable_all()
            .build()?;
        let bind = |port| runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
        let listener = bind(port).or_else(|_| bind(0))?;
        let address = listener.local_addr()?;
        mark.set_len(0)?;
        mark.rewind()?;
        mark.write_all(address.port().to_string().as_bytes())?;
        let mut builder = S3ServiceBuilder::new(Service { objects, bucket: BUCKET });
        builder.set_auth(SimpleAuth::from_single(access_key.clone(), secret_key.clone()));
        runtime.spawn(serve(listener, builder.build()));
        let store = Self {
            directory: directory.to_owned(),
            endpoint: format!("http://{address}"),
            access_key,
            secret_key,
            runtime: Some(runtime),
            _mark: mark,
        };
        store.write_client()?;
        Ok(store)
    }

    /// Writes [`CLIENT`], readable only by this user.
    fn write_client(&self) -> io::Result<()> {
        let path = self.directory.join(CLIENT);
        // A new file: another program may still have the old one open.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = ogive_private::create_new(&path)?;
        writeln!(file, "# For S3 clients while the store runs; the bucket is s3://{BUCKET}")?;
        for (name, value) in self.variables() {
            writeln!(file, "export {name}={value}")?;
        }
        Ok(())
    }

    /// Address of the store, such as `http://127.0.0.1:40123`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Name of the only bucket.
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// The environment variables with which an S3 client finds the store and signs its requests.
    pub fn variables(&self) -> [(&'static str, &str); 5] {
        [
            ("AWS_ENDPOINT_URL", &self.endpoint),
            ("AWS_ACCESS_KEY_ID", &self.access_key),
            ("AWS_SECRET_ACCESS_KEY", &self.secret_key),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ]
    }
}

impl Drop for DemoStore {
    fn drop(&mut self) {
        // Its credentials end with this run.
        let _ = fs::remove_file(self.directory.join(CLIENT));
        // The next run takes the same port, so this one waits until its listener is closed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(SHUTDOWN_MAX);
        }
    }
}

/// Accepts connections as long as the runtime lives.
async fn serve(listener: TcpListener, service: S3Service) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        let Ok((socket, _)) = listener.accept().await else {
            // The process is out of descriptors: open connections have to end first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(socket), service.clone());
        tokio::spawn(async move {
            // Clients may close their connections at any time.
            let _ = connection.await;
            drop(permit);
        });
    }
}

/// Opens or creates the directory of a store. Returns its mark, locked, and the port of the last
/// run, or 0.
fn take(directory: &Path) -> io::Result<(File, u16)> {
    ogive_private::create_directories(directory)?;
    let path = directory.join(MARK);
    if !path.exists() && fs::read_dir(directory)?.next().is_some() {
        return Err(io::Error::other(format!(
            "it is not empty and has no file {MARK}, so it is not a store; use a directory that \
             is empty or does not exist yet"
        )));
    }
    let mut options = ogive_private::options();
    let mut mark = options.read(true).write(true).create(true).truncate(false).open(&path)?;
    flock(&mark, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| io::Error::other("another store serves it; stop that one first"))?;
    let mut port = String::new();
    (&mut mark).take(64).read_to_string(&mut port)?;
    Ok((mark, port.trim().parse().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_one_store_only() {
        let directory = tempfile::tempdir().unwrap();
        let store = DemoStore::start(directory.path()).unwrap();
        let second = DemoStore::start(directory.path()).unwrap_err().to_string();
        assert!(second.contains("stop that one first"), "{second}");
        drop(store);
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("letter"), "dear").unwrap();
        let refusal = DemoStore::start(home.path()).unwrap_err().to_string();
        assert!(refusal.contains("is not a store"), "{refusal}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_address_stays_and_credentials_end_with_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let client = directory.path().join(CLIENT);
        // Another program may take the port between two runs, but not each time.
        let stays = (0..5).any(|_| {
            let store = DemoStore::start(directory.path()).unwrap();
            let (endpoint, secret) = (store.endpoint.clone(), store.secret_key.clone());
            assert!(endpoint.starts_with("http://127.0.0.1:"), "{endpoint}");
            assert!(fs::read_to_string(&client).unwrap().contains(&secret));
            drop(store);
            assert!(!client.exists());
            let store = DemoStore::start(directory.path()).unwrap();
            assert_ne!(store.secret_key, secret);
            store.endpoint == endpoint
        });
        assert!(stays, "each run had another address");
    }
}
