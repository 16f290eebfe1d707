//! Names in the listings of web servers: the answer to a PROPFIND (RFC 4918), and the HTML page
//! that a server generates for a directory.
//!
//! Both are untrusted, so only names are taken from them. A link counts if it leads to the same
//! server, one step below the directory, and if its last part can be a file name. Other links on a
//! page (sorting, parents, advertisements) do not count.

use crate::KeyRules;
use html5gum::{Token, Tokenizer};
use percent_encoding::percent_decode_str;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeMap;
use std::time::SystemTime;
use url::Url;

/// How many names one listing may have.
pub const NAMES_MAX: usize = 100_000;

/// The entry of a name in a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Its size, if the listing has it.
    pub size_bytes: Option<u64>,
    /// Its tag in the server's notation.
    pub etag: Option<String>,
    /// When it was changed.
    pub modified: Option<SystemTime>,
}

/// Why a listing is useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadListing {
    /// It does not have the expected format.
    #[error("the server's listing cannot be read")]
    Unreadable,
    /// It has too many names.
    #[error("the server's listing has more than {NAMES_MAX} names")]
    TooLong,
}

/// The names of a listing.
pub type Names = BTreeMap<String, IndexEntry>;

/// The name of a link in a directory, and whether it is a directory.
fn name_of(directory: &Url, link: &str) -> Option<(String, bool)> {
    let target = directory.join(link.trim()).ok()?;
    if target.origin() != directory.origin() || target.query().is_some() {
        return None;
    }
    let rest = target.path().strip_prefix(directory.path())?;
    let (part, is_directory) = match rest.strip_suffix('/') {
        Some(part) => (part, true),
        None => (rest, false),
    };
    // Reject an encoded slash or dot as well: the address would mean something else.
    let name = percent_decode_str(part).decode_utf8().ok()?;
    if name.contains('/') || KeyRules::WEB.name_in("", &name).is_none() {
        return None;
    }
    Some((name.into_owned(), is_directory))
}

fn add(names: &mut Names, name: String, named: IndexEntry) -> Result<(), BadListing> {
    if names.len() >= NAMES_MAX && !names.contains_key(&name) {
        return Err(BadListing::TooLong);
    }
    let known = names.entry(name).or_insert_with(|| named.clone());
    known.is_directory |= named.is_directory;
    Ok(())
}

/// The names in the HTML page of a directory, whose address ends in a slash.
///
/// # Errors
/// [`BadListing::TooLong`]. Any text is valid HTML.
pub fn of_html(directory: &Url, text: &str) -> Result<Names, BadListing> {
    let mut names = Names::new();
    for Ok(token) in Tokenizer::new(text) {
        let Token::StartTag(tag) = token else { continue };
        if tag.name.as_slice() != b"a" {
            continue;
        }
        let Some(link) = tag.attributes.get(b"href".as_slice()) else { continue };
        let link = String::from_utf8_lossy(link);
        if let Some((name, is_directory)) = name_of(directory, &link) {
            add(&mut names, name, IndexEntry { is_directory, ..IndexEntry::default() })?;
        }
    }
    Ok(names)
}

/// The names in the answer to a PROPFIND of a directory, whose address ends in a slash.
///
/// # Errors
/// [`BadListing`].
pub fn of_propfind(directory: &Url, text: &str) -> Result<Names, BadListing> {
    let mut names = Names::new();
    let mut reader = Reader::from_str(text);
    let (mut link, mut named) = (String::new(), IndexEntry::default());
    let mut inside = String::new();
    let mut is_known = false;
    loop {
        match reader.read_event().map_err(|_| BadListing::Unreadable)? {
            Event::Start(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                is_known |= name == "multistatus";
                match &*name {
                    "response" => (link, named) = Default::default(),
                    "collection" => named.is_directory = true,
                    _ => {}
                }
                inside = name;
            }
            Event::Empty(tag) => {
                named.is_directory |= tag.local_name().as_ref() == "collection";
            }
            Event::Text(text) => {
                take(&inside, &text, &mut link, &mut named);
            }
            // Entities, as in a name with an ampersand, split a text into pieces.
            Event::GeneralRef(entity) => {
                let is = match entity.resolve_char_ref().map_err(|_| BadListing::Unreadable)? {
                    Some(letter) => letter.to_string(),
                    None => quick_xml::escape::resolve_xml_entity(&entity)
                        .ok_or(BadListing::Unreadable)?
                        .to_owned(),
                };
                take(&inside, &is, &mut link, &mut named);
            }
            Event::End(tag) => {
                if tag.local_name().as_ref() == "response"
                    && let Some((name, is_directory)) = name_of(directory, &link)
                {
                    named.is_directory |= is_directory;
                    add(&mut names, name, std::mem::take(&mut named))?;
                }
                inside.clear();
            }
            Event::Eof if is_known => return Ok(names),
            Event::Eof => return Err(BadListing::Unreadable),
            _ => {}
        }
    }
}

/// Takes the text of an element, or a piece of it.
fn take(element: &str, text: &str, link: &mut String, named: &mut IndexEntry) {
    match element {
        "href" => link.push_str(text),
        "getetag" => named.etag.get_or_insert_default().push_str(text.trim()),
        "getcontentlength" => named.size_bytes = text.trim().parse().ok(),
        "getlastmodified" => named.modified = httpdate::parse_http_date(text.trim()).ok(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> Url {
        Url::parse("http://host:1/a%20b/d/").unwrap()
    }

    fn links(links: &[&str]) -> Vec<String> {
        let page: String = links.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect();
        of_html(&directory(), &page).unwrap().into_keys().collect()
    }

    #[test]
    fn links_one_step_below_are_names() {
        let found =
            links(&["x", "y/", "./z", "/a%20b/d/w", "http://host:1/a%20b/d/v", "%C3%BC%20%26"]);
        assert_eq!(found, ["v", "w", "x", "y", "z", "ü &"]);
        let page = "<TABLE><tr><td><A class=c HREF='sub/'>sub/</A></td>";
        let names = of_html(&directory(), page).unwrap();
        assert!(names["sub"].is_directory);
    }

    #[test]
    fn links_that_lead_elsewhere_are_not_names() {
        let found = links(&[
            "../",
            "..",
            "/",
            "",
            "./",
            "x/y",
            "x//",
            "?C=N;O=D",
            "x?C=M",
            "https://host:1/a%20b/d/x",
            "http://other/a%20b/d/x",
            "http://host:2/a%20b/d/x",
            "//evil/a%20b/d/x",
            "mailto:x",
            "javascript:x",
            "%2e%2e",
            "%2F",
            "x%2Fy",
            "x%00",
            "%FF",
            "file:///etc/passwd",
            "data:text/html,x",
            &"n".repeat(256),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn an_answer_of_webdav_has_sizes_times_and_tags() {
        let text = r#"<?xml version="1.0"?><D:multistatus xmlns:D="DAV:" xmlns:l="DAV:">
            <D:response><D:href>/a%20b/d/</D:href><D:propstat><D:prop><D:resourcetype>
              <D:collection/></D:resourcetype></D:prop></D:propstat></D:response>
            <D:response><D:href>http://host:1/a%20b/d/f&amp;g</D:href><D:propstat><D:prop>
              <l:getcontentlength>12</l:getcontentlength><l:getetag>&quot;7&quot;</l:getetag>
              <D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>
            </D:prop></D:propstat></D:response>
            <D:response><D:href>/a%20b/d/sub</D:href><D:propstat><D:prop><D:resourcetype>
              <D:collection></D:collection></D:resourcetype></D:prop></D:propstat></D:response>
            </D:multistatus>"#;
        let names = of_propfind(&directory(), text).unwrap();
        assert_eq!(names.len(), 2);
        let file = &names["f&g"];
        assert_eq!((file.size_bytes, file.etag.as_deref()), (Some(12), Some("\"7\"")));
        assert!(file.modified.is_some() && !file.is_directory && names["sub"].is_directory);
    }

    #[test]
    fn an_answer_that_is_not_webdav_is_refused() {
        for text in ["", "<html></html>", "<a><b></a>", "<multistatus>&unknown;", "{}"] {
            assert_eq!(of_propfind(&directory(), text), Err(BadListing::Unreadable), "{text}");
        }
    }

    #[test]
    fn an_endless_listing_is_refused() {
        let page: String = (0..=NAMES_MAX).map(|number| format!("<a href={number}>")).collect();
        assert_eq!(of_html(&directory(), &page), Err(BadListing::TooLong));
    }
}
