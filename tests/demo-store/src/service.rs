//! The requests of S3, as operations on [`Objects`].
//!
//! It supports what a mount and the usual clients need: objects, ranges, conditions, listings,
//! multipart uploads, copies. The library answers everything else (versions, tags, access lists)
//! with 501.

use crate::object_files::{
    ClientMetadata, Expected, Head, HttpHeaders, Objects, Open, Page, Refusal, Scratch,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use tokio::task::block_in_place;

/// How many bytes of a body are read and sent at a time.
const PIECE_BYTES: u64 = 256 << 10;
/// The characters of a key that are encoded if a client requests it.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The largest number of a part.
const PARTS_MAX: i32 = 10_000;

/// The service of one bucket.
pub(super) struct Service {
    pub(super) objects: Arc<Objects>,
    pub(super) bucket: &'static str,
}

impl From<Refusal> for S3Error {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::NotFound => S3ErrorCode::NoSuchKey,
            Refusal::ConditionFailed => S3ErrorCode::PreconditionFailed,
            Refusal::UnknownUpload => S3ErrorCode::NoSuchUpload,
            Refusal::InvalidPart => S3ErrorCode::InvalidPart,
            Refusal::TooMany => S3ErrorCode::SlowDown,
            Refusal::Io(ref error) if error.kind() == io::ErrorKind::StorageFull => {
                S3ErrorCode::Custom("StorageFull".into())
            }
            Refusal::Io(_) => S3ErrorCode::InternalError,
        };
        let is_full = matches!(code, S3ErrorCode::Custom(_));
        let mut error = Self::with_message(code, refusal.to_string());
        if is_full {
            error.set_status_code(StatusCode::INSUFFICIENT_STORAGE);
        }
        error
    }
}

/// The condition of a change.
fn wanted(matches: Option<&ETagCondition>, none: Option<&ETagCondition>) -> S3Result<Expected> {
    match (matches, none) {
        (None, None) => Ok(Expected::Anything),
        (None, Some(ETagCondition::Any)) => Ok(Expected::Absent),
        (Some(ETagCondition::Any), None) => Ok(Expected::Present),
        (Some(ETagCondition::ETag(etag)), None) => {
            // A weak ETag matches no object.
            Ok(Expected::Tag(etag.as_strong().unwrap_or_default().to_owned()))
        }
        _ => Err(s3_error!(NotImplemented, "this condition is not supported")),
    }
}

/// Checks the conditions of a read.
fn readable(
    head: &Head,
    matches: Option<&ETagCondition>,
    none: Option<&ETagCondition>,
) -> S3Result<()> {
    let is = |condition: &ETagCondition| match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(etag) => etag.as_strong() == Some(&*head.etag),
    };
    if matches.is_some_and(|condition| !is(condition)) {
        return Err(s3_error!(PreconditionFailed));
    }
    if none.is_some_and(is) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

fn etag(head: &Head) -> Option<ETag> {
    Some(ETag::Strong(head.etag.clone()))
}

/// The metadata in a request.
macro_rules! beside {
    ($input:ident) => {
        ClientMetadata {
            metadata: $input.metadata.into_iter().flatten().collect(),
            headers: HttpHeaders {
                content_type: $input.content_type,
                content_encoding: $input.content_encoding,
                content_disposition: $input.content_disposition,
                cache_control: $input.cache_control,
            },
        }
    };
}

/// The media type of an object; Amazon's default if the client gave none.
fn content_type(headers: &HttpHeaders) -> Option<String> {
    Some(headers.content_type.clone().unwrap_or_else(|| "binary/octet-stream".to_owned()))
}

fn part_number(number: PartNumber) -> S3Result<u16> {
    match u16::try_from(number) {
        Ok(number) if (1..=PARTS_MAX).contains(&i32::from(number)) => Ok(number),
        _ => Err(s3_error!(InvalidArgument, "part numbers are from 1 to 10,000")),
    }
}

/// Writes a body to disk.
async fn receive(body: Option<StreamingBlob>, file: &mut Scratch) -> S3Result<()> {
    let Some(mut body) = body else { return Ok(()) };
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| s3_error!(IncompleteBody))?;
        block_in_place(|| file.write(&piece)).map_err(Refusal::from)?;
    }
    Ok(())
}

/// The bytes of an object from `at` to `end`.
fn send(open: Open, at: u64, end: u64) -> StreamingBlob {
    let pieces = stream::unfold((open, at), move |(open, at)| async move {
        if at >= end {
            return None;
        }
        let mut piece = vec![0; PIECE_BYTES.min(end - at) as usize];
        let read = block_in_place(|| open.file.read_exact_at(&mut piece, open.body_at + at));
        let next = at + piece.len() as u64;
        Some(match read {
            Ok(()) => (Ok(Bytes::from(piece)), (open, next)),
            Err(error) => (Err(error), (open, end)),
        })
    });
    StreamingBlob::wrap::<_, io::Error>(pieces)
}

fn copied_from(source: &CopySource) -> S3Result<(&str, &str)> {
    match source {
        CopySource::Bucket { bucket, key, version_id: None } => Ok((bucket, key)),
        _ => Err(s3_error!(NotImplemented, "only objects of this bucket can be copied")),
    }
}

/// The range of a copied part: both ends are given, inclusive.
fn copied_range(text: Option<&str>, size_bytes: u64) -> S3Result<(u64, u64)> {
    let Some(text) = text else { return Ok((0, size_bytes)) };
    let parsed = text.strip_prefix("bytes=").and_then(|range| {
        let (first, last) = range.split_once('-')?;
        Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
    });
    match parsed {
        Some((first, last)) if first <= last && last < size_bytes => Ok((first, last - first + 1)),
        Some(_) => Err(s3_error!(InvalidRange)),
        None => Err(s3_error!(InvalidArgument, "not a range of bytes")),
    }
}

/// A key in a listing: encoded if the client requests it, because XML cannot hold all characters.
fn told(key: &str, encoding: Option<&EncodingType>) -> String {
    match encoding {
        Some(_) => utf8_percent_encode(key, ENCODED).to_string(),
        None => key.to_owned(),
    }
}

/// The entries of a page of a listing.
fn listed(page: &Page, encoding: Option<&EncodingType>) -> (Vec<Object>, Vec<CommonPrefix>) {
    let contents = page.objects.iter().map(|head| Object {
        key: Some(told(&head.key, encoding)),
        size: Some(head.size_bytes as i64),
        e_tag: etag(head),
        last_modified: Some(head.modified().into()),
        ..Default::default()
    });
    let prefixes = page.prefixes.iter();
    let prefixes = prefixes.map(|prefix| CommonPrefix { prefix: Some(told(prefix, encoding)) });
    (contents.collect(), prefixes.collect())
}

/// Continuation tokens are keys in hexadecimal digits, which are safe in a query.
fn token(key: &str) -> String {
    key.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn key_of(token: &str) -> Option<String> {
    let (digits, rest) = token.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.iter().map(byte).collect();
    String::from_utf8(bytes.filter(|_| rest.is_empty())?).ok()
}

impl Service {
    fn check(&self, bucket: &str) -> S3Result<()> {
        if bucket == self.bucket { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
    }
}

#[async_trait::async_trait]
impl S3 for Service {
    async fn list_buckets(
        &self,
        _: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let bucket = Bucket { name: Some(self.bucket.to_owned()), ..Default::default() };
        let output = ListBucketsOutput { buckets: Some(vec![bucket]), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.check(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let head = self.objects.head(&input.key)?;
        readable(&head, input.if_match.as_ref(), input.if_none_match.as_ref())?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(head.size_bytes as i64),
            e_tag: etag(&head),
            last_modified: Some(head.modified().into()),
            content_type: content_type(&head.beside.headers),
            content_encoding: head.beside.headers.content_encoding,
            content_disposition: head.beside.headers.content_disposition,
            cache_control: head.beside.headers.cache_control,
            metadata: Some(head.beside.metadata.into_iter().collect()),
            ..Default::default()
        }))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let open = block_in_place(|| self.objects.read(&input.key))?;
        let head = open.head.clone();
        readable(&head, input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let size = head.size_bytes;
        let (range, content_range) = match input.range {
            None => (0..size, None),
            Some(range) => {
                let range = range.check(size)?;
                let text = format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1));
                (range, Some(text))
            }
        };
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some((range.end - range.start) as i64),
            content_range,
            e_tag: etag(&head),
            last_modified: Some(head.modified().into()),
            content_type: content_type(&head.beside.headers),
            content_encoding: head.beside.headers.content_encoding,
            content_disposition: head.beside.headers.content_disposition,
            cache_control: head.beside.headers.cache_control,
            metadata: Some(head.beside.metadata.into_iter().collect()),
            body: Some(send(open, range.start, range.end)),
            ..Default::default()
        }))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        if input.write_offset_bytes.is_some() {
            return Err(s3_error!(NotImplemented, "appends are not supported"));
        }
        let wanted = wanted(input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let draft = || self.objects.draft(&input.key, beside!(input));
        let mut draft = block_in_place(draft)?;
        receive(input.body, &mut draft.file).await?;
        let head = block_in_place(|| self.objects.put(draft, &wanted))?;
        Ok(S3Response::new(PutObjectOutput { e_tag: etag(&head), ..Default::default() }))
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let input = request.input;
        let (bucket, key) = copied_from(&input.copy_source)?;
        self.check(&input.bucket)?;
        self.check(bucket)?;
        let copy = || {
            let open = self.objects.read(key)?;
            let matches = input.copy_source_if_match.as_ref();
            readable(&open.head, matches, input.copy_source_if_none_match.as_ref())?;
            let is_new = input.metadata_directive.is_some_and(|what| what.as_str() == "REPLACE");
            let kept = if is_new { beside!(input) } else { open.head.beside.clone() };
            let mut draft = self.objects.draft(&input.key, kept)?;
            let copied = draft.file.append(&open.file, open.body_at, open.head.size_bytes);
            copied.map_err(Refusal::from)?;
            Ok::<_, S3Error>(self.objects.put(draft, &Expected::Anything)?)
        };
        let head = block_in_place(copy)?;
        let copied = CopyObjectResult {
            e_tag: etag(&head),
            last_modified: Some(head.modified().into()),
            ..Default::default()
        };
        let output = CopyObjectOutput { copy_object_result: Some(copied), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let wanted = wanted(input.if_match.as_ref(), None)?;
        block_in_place(|| self.objects.delete(&input.key, &wanted))?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let mut deleted = Vec::new();
        for object in input.delete.objects {
            block_in_place(|| self.objects.delete(&object.key, &Expected::Anything))?;
            deleted.push(DeletedObject { key: Some(object.key), ..Default::default() });
        }
        let output = DeleteObjectsOutput { deleted: Some(deleted), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let prefix = input.prefix.as_deref().unwrap_or_default();
        let after = match &input.continuation_token {
            None => input.start_after.clone(),
            Some(token) => {
                Some(key_of(token).ok_or_else(|| s3_error!(InvalidArgument, "no such token"))?)
            }
        };
        let max = usize::try_from(input.max_keys.unwrap_or(1000)).unwrap_or(0).min(1000);
        let delimiter = input.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
        let page = match max {
            0 => Default::default(),
            max => self.objects.list(prefix, delimiter, after.as_deref(), max),
        };
        let (contents, prefixes) = listed(&page, input.encoding_type.as_ref());
        Ok(S3Response::new(ListObjectsV2Output {
            key_count: i32::try_from(contents.len() + prefixes.len()).ok(),
            max_keys: i32::try_from(max).ok(),
            is_truncated: Some(page.more_after.is_some()),
            next_continuation_token: page.more_after.as_deref().map(token),
            contents: Some(contents),
            common_prefixes: Some(prefixes),
            name: Some(input.bucket),
            prefix: Some(told(prefix, input.encoding_type.as_ref())),
            delimiter: input.delimiter,
            continuation_token: input.continuation_token,
            encoding_type: input.encoding_type,
            start_after: input.start_after,
            ..Default::default()
        }))
    }

    /// The listing of before 2016, which some clients still use.
    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let prefix = input.prefix.as_deref().unwrap_or_default();
        let max = usize::try_from(input.max_keys.unwrap_or(1000)).unwrap_or(0).min(1000);
        let delimiter = input.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
        let after = input.marker.as_deref().filter(|marker| !marker.is_empty());
        let page = match max {
            0 => Default::default(),
            max => self.objects.list(prefix, delimiter, after, max),
        };
        let encoding = input.encoding_type.as_ref();
        let (contents, prefixes) = listed(&page, encoding);
        Ok(S3Response::new(ListObjectsOutput {
            max_keys: i32::try_from(max).ok(),
            is_truncated: Some(page.more_after.is_some()),
            next_marker: page.more_after.as_deref().map(|key| told(key, encoding)),
            contents: Some(contents),
            common_prefixes: Some(prefixes),
            name: Some(input.bucket),
            prefix: Some(told(prefix, encoding)),
            delimiter: input.delimiter,
            marker: input.marker,
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let id = self.objects.upload(&input.key, beside!(input))?;
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            ..Default::default()
        }))
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let number = part_number(input.part_number)?;
        let mut file = block_in_place(|| self.objects.scratch()).map_err(Refusal::from)?;
        receive(input.body, &mut file).await?;
        let etag = block_in_place(|| self.objects.part(&input.upload_id, number, file))?;
        let e_tag = Some(ETag::Strong(etag));
        Ok(S3Response::new(UploadPartOutput { e_tag, ..Default::default() }))
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let input = request.input;
        let (bucket, key) = copied_from(&input.copy_source)?;
        self.check(&input.bucket)?;
        self.check(bucket)?;
        let number = part_number(input.part_number)?;
        let copy = || {
            let open = self.objects.read(key)?;
            let matches = input.copy_source_if_match.as_ref();
            readable(&open.head, matches, input.copy_source_if_none_match.as_ref())?;
            let range = input.copy_source_range.as_deref();
            let (from, bytes) = copied_range(range, open.head.size_bytes)?;
            let mut file = self.objects.scratch().map_err(Refusal::from)?;
            file.append(&open.file, open.body_at + from, bytes).map_err(Refusal::from)?;
            Ok::<_, S3Error>(self.objects.part(&input.upload_id, number, file)?)
        };
        let e_tag = Some(ETag::Strong(block_in_place(copy)?));
        let copied = CopyPartResult { e_tag, ..Default::default() };
        let output = UploadPartCopyOutput { copy_part_result: Some(copied), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let wanted = wanted(input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let given = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let mut parts = Vec::new();
        for part in given {
            let number = part_number(part.part_number.unwrap_or(0))?;
            let etag = part.e_tag.map(ETag::into_value).unwrap_or_default();
            parts.push((number, etag));
        }
        if parts.is_empty() || !parts.is_sorted_by(|one, next| one.0 < next.0) {
            return Err(s3_error!(InvalidPartOrder));
        }
        let head = block_in_place(|| self.objects.complete(&input.upload_id, &parts, &wanted))?;
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag: etag(&head),
            ..Default::default()
        }))
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let prefix = input.prefix.unwrap_or_default();
        let encoding = input.encoding_type.as_ref();
        // All at once: the number of uploads is limited to what one answer may have.
        let in_progress = self.objects.uploads(&prefix).into_iter();
        let uploads = in_progress.map(|(key, id, began)| MultipartUpload {
            key: Some(told(&key, encoding)),
            upload_id: Some(id),
            initiated: Some(began.into()),
            ..Default::default()
        });
        Ok(S3Response::new(ListMultipartUploadsOutput {
            bucket: Some(input.bucket),
            prefix: Some(told(&prefix, encoding)),
            uploads: Some(uploads.collect()),
            is_truncated: Some(false),
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
    }

    async fn list_parts(
        &self,
        request: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        let parts = self.objects.parts(&input.upload_id)?.into_iter();
        let parts = parts.map(|(number, etag, size)| Part {
            part_number: Some(number.into()),
            e_tag: Some(ETag::Strong(etag)),
            size: i64::try_from(size).ok(),
            ..Default::default()
        });
        Ok(S3Response::new(ListPartsOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(input.upload_id),
            parts: Some(parts.collect()),
            is_truncated: Some(false),
            ..Default::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = request.input;
        self.check(&input.bucket)?;
        block_in_place(|| self.objects.abort(&input.upload_id))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_decodes_to_its_key_and_other_text_is_refused() {
        for key in ["", "a", "ü/ \n", "a/b/"] {
            assert_eq!(key_of(&token(key)).as_deref(), Some(key));
        }
        for nonsense in ["x", "6", "zz", "ff", "é1"] {
            assert_eq!(key_of(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_copied_range_has_to_lie_in_the_object() {
        assert_eq!(copied_range(None, 7).unwrap(), (0, 7));
        assert_eq!(copied_range(Some("bytes=2-3"), 7).unwrap(), (2, 2));
        for wrong in ["2-3", "bytes=3-2", "bytes=0-7", "bytes=-1", "bytes=1-", "bytes=a-b"] {
            assert!(copied_range(Some(wrong), 7).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unsupported_conditions_are_refused_and_not_ignored() {
        let tag = ETagCondition::ETag(ETag::Strong("x".into()));
        assert_eq!(wanted(Some(&tag), None).unwrap(), Expected::Tag("x".into()));
        assert_eq!(wanted(None, Some(&ETagCondition::Any)).unwrap(), Expected::Absent);
        assert!(wanted(None, Some(&tag)).is_err());
        assert!(wanted(Some(&tag), Some(&ETagCondition::Any)).is_err());
    }
}
