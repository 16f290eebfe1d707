//! The description of an object and its bytes, in one answer.
//!
//! The request is a GET of the whole object without a range: only such an answer includes the
//! checksum of the object. If the object turns out to be large, its body is not read, the
//! connection is dropped, and the caller requests ranges. Two answers are never combined, because
//! the object may have changed. A broken body is fetched again from its start.

use super::fetching::pause;
use super::{RETRIES, Shared, StoreKind};
use crate::{Object, Result};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use opendal::options::ReaderOptions;
use opendal::{ErrorKind, Metadata};
use std::time::Instant;

impl Shared {
    /// See [`crate::Bucket::head_with_bytes`].
    pub(super) fn head_with_bytes(
        &self,
        key: &str,
        most_bytes: u64,
    ) -> Result<(Object, Option<Bytes>)> {
        // For the other stores it is untested whether a GET describes an object like a HEAD.
        if self.kind != StoreKind::S3 {
            return Ok((self.head(key)?, None));
        }
        self.sendable(key)?;
        let (metadata, bytes) = self.wait(key, async {
            let mut tries = 0;
            loop {
                match self.once(key, most_bytes).await {
                    Err(error) if error.is_temporary() && tries < RETRIES => {
                        log::info!("repeating a request: {}", error.message());
                        tokio::time::sleep(pause(tries)).await;
                        tries += 1;
                    }
                    answer => return answer,
                }
            }
        })?;
        Ok((self.object(key, &metadata), bytes))
    }

    async fn once(&self, key: &str, most: u64) -> opendal::Result<(Metadata, Option<Bytes>)> {
        let sent = Instant::now();
        let reader = self.reading.operator.reader_options(key, ReaderOptions::default()).await?;
        let mut stream = reader.into_stream(..).await?;
        let metadata = stream.metadata().await?;
        self.reading.first_byte(sent);
        let size = metadata.content_length();
        if size > most {
            return Ok((metadata, None));
        }
        let mut bytes = BytesMut::new();
        while let Some(piece) = stream.next().await.transpose()? {
            for part in piece {
                bytes.extend_from_slice(&part);
            }
            if bytes.len() as u64 > size {
                break;
            }
        }
        if bytes.len() as u64 != size {
            let message = format!("received {} of {size} bytes", bytes.len());
            return Err(opendal::Error::new(ErrorKind::Unexpected, message).set_temporary());
        }
        Ok((metadata, Some(bytes.freeze())))
    }
}
