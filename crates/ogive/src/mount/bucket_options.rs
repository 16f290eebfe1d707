//! Refuses options that do not fit the source, before any request is made.

use std::path::Path;

use ogive_bucket::StoreKind;

use super::bucket::{BucketArgs, DIRECTORY_MODE, FILE_MODE, MetadataConvention, Offline};
use crate::exit::{self, Refusal};

/// Refuses addresses with other schemes that are not paths.
pub(super) fn refuse_other_schemes(source: &str) -> Result<(), Refusal> {
    match source.split_once("://") {
        Some((scheme, _)) if !Path::new(source).exists() => Err(Refusal::new(
            exit::USAGE,
            format!("cannot mount {source}: ogive does not support {scheme}"),
        )
        .hint(
            "give a directory, a bucket such as s3://BUCKET/PREFIX (or az://, gs://), or an address \
             such as https://HOST/PATH",
        )),
        _ => Ok(()),
    }
}

/// Refuses prefixes and buckets that would change on the way to the store.
pub(super) fn refuse_other_prefix(
    source: &str,
    kind: StoreKind,
    (bucket, prefix): (&str, &str),
) -> Result<(), Refusal> {
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || "-._$:".contains(letter);
    if !bucket.chars().all(is_usual) || bucket == "." || bucket == ".." {
        let what = format!("cannot mount {source}: {bucket:?} cannot be the name of a bucket");
        return Err(Refusal::new(exit::USAGE, what).hint("check the address"));
    }
    if prefix.is_empty() {
        return Ok(());
    }
    kind.key_rules().sendable(prefix).map(drop).map_err(|error| {
        Refusal::new(exit::USAGE, format!("cannot mount {source}: {error}"))
            .hint("mount its parent: MNT/.ogive/hidden lists the keys that are not shown")
    })
}

/// Refuses addresses of web servers with characters that an address replaces or drops.
pub(super) fn refuse_other_address(source: &str) -> Result<(), Refusal> {
    let is_other = |letter: char| letter == '\\' || letter.is_control() || letter.is_whitespace();
    if !source.contains(is_other) {
        return Ok(());
    }
    let what = format!("cannot mount {source:?}: an address has no white space and no backslash");
    Err(Refusal::new(exit::USAGE, what).hint("write %20 for a blank, and %5C for a backslash"))
}

/// Refuses options of S3 for other stores, and a metadata convention that Azure does not allow.
pub(super) fn refuse_of_amazon(
    scheme: &str,
    kind: StoreKind,
    args: &BucketArgs,
) -> Result<(), Refusal> {
    if kind == StoreKind::Azure && args.metadata == MetadataConvention::Gcs {
        let what = "cannot mount: Azure does not allow hyphens in metadata names, which \
                    --metadata gcs uses";
        return Err(
            Refusal::new(exit::USAGE, what).hint("write --metadata s3fs, or leave the option out")
        );
    }
    let given = [
        (args.region.is_some(), "--region"),
        (args.profile.is_some(), "--profile"),
        (args.force_path_style, "--force-path-style"),
        (args.requester_pays, "--requester-pays"),
    ];
    match given.iter().find(|(is_given, _)| *is_given && kind != StoreKind::S3) {
        Some((_, option)) => Err(Refusal::new(
            exit::USAGE,
            format!("cannot mount: {option} is for s3://, and the source is {scheme}"),
        )
        .hint("leave the option out")),
        None => Ok(()),
    }
}

/// The first given option about the connection to a store.
fn how_to_reach(args: &BucketArgs) -> Option<&'static str> {
    let given = [
        (args.endpoint_url.is_some(), "--endpoint-url"),
        (args.region.is_some(), "--region"),
        (args.profile.is_some(), "--profile"),
        (args.no_sign_request, "--no-sign-request"),
        (args.force_path_style, "--force-path-style"),
        (args.requester_pays, "--requester-pays"),
    ];
    given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
}

/// Refuses options of stores: a web server is read-only, and read without credentials.
pub(super) fn refuse_of_stores(source: &str, args: &BucketArgs) -> Result<(), Refusal> {
    let found =
        how_to_reach(args).or((args.metadata != MetadataConvention::Off).then_some("--metadata"));
    let refused = |text: String| Refusal::new(exit::USAGE, text).hint("leave the option out");
    match (found, args.stage.given()) {
        (Some(option), _) => {
            Err(refused(format!("cannot mount {source}: {option} is for buckets")))
        }
        (None, Some(option)) => Err(refused(format!(
            "cannot mount {source}: {option} is for writing, and web servers are read-only"
        ))),
        (None, None) => Ok(()),
    }
}

/// Refuses options of buckets for a directory, which the user does not expect to be ignored.
pub(super) fn refuse_options(args: &BucketArgs) -> Result<(), Refusal> {
    let given = [
        (args.uid.is_some(), "--uid"),
        (args.gid.is_some(), "--gid"),
        (args.file_mode != FILE_MODE, "--file-mode"),
        (args.dir_mode != DIRECTORY_MODE, "--dir-mode"),
        (args.metadata != MetadataConvention::Off, "--metadata"),
        (args.offline != Offline::Error, "--offline"),
    ];
    let found = given.into_iter().find_map(|(is_given, option)| is_given.then_some(option));
    match how_to_reach(args).or(found).or(args.cost.given()).or(args.stage.given()) {
        Some(option) => Err(Refusal::new(
            exit::USAGE,
            format!("cannot mount: {option} is for buckets, and the source is a directory"),
        )
        .hint("write the source as s3://BUCKET/PREFIX, or leave the option out")),
        None => Ok(()),
    }
}
