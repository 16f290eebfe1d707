//! Listings of web servers: any bytes, as the HTML page of a directory and as an answer of WebDAV.
//! Each name found must be a valid file name, below the directory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_bucket::index::{NAMES_MAX, Names, of_html, of_propfind};
use url::Url;

fn check(names: &Names) {
    assert!(names.len() <= NAMES_MAX);
    for name in names.keys() {
        assert!(!name.is_empty() && name.len() <= 255);
        assert!(name != "." && name != ".." && !name.contains(['/', '\0']));
    }
}

fuzz_target!(|data: &[u8]| {
    let directory = Url::parse("https://host/a%20b/").expect("an address");
    let text = String::from_utf8_lossy(data);
    for names in [of_html(&directory, &text), of_propfind(&directory, &text)].into_iter().flatten()
    {
        check(&names);
    }
});
