//! Content blocks of ACP: the text in them, and the addresses of files.

use std::path::Path;

use serde_json::Value;
use url::Url;

/// The text of a prompt that was given as content blocks.
pub fn text(blocks: &[Value]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect();
    texts.join("\n")
}

/// The path of a `file:` address, without the part of the file that is meant; another address as it is.
pub fn path_of(uri: &str) -> String {
    let is_file = uri.starts_with("file://");
    let path = Url::parse(uri).ok().filter(|_| is_file).and_then(|url| url.to_file_path().ok());
    path.map_or_else(|| uri.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// An absolute path as a `file:` address; any other path as it is.
pub fn file_uri(path: &Path) -> String {
    let url = Url::from_file_path(path);
    url.map_or_else(|()| path.to_string_lossy().into_owned(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_file_is_its_path() {
        for (uri, path) in [
            ("file:///a/b", "/a/b"),
            ("file://localhost/a", "/a"),
            ("file:///%C3%A9%2F%", "/é/%"),
            ("file:///a%zz", "/a%zz"),
            ("file:///dir/?x#y", "/dir/"),
            ("file:///a b/é", "/a b/é"),
            // Of another machine.
            ("file://server/a", "file://server/a"),
            ("file:", "file:"),
            ("https://example.com/%20", "https://example.com/%20"),
        ] {
            assert_eq!(path_of(uri), path);
        }
    }

    #[test]
    fn the_address_of_a_path_leads_back_to_it() {
        assert_eq!(file_uri(Path::new("/a b/c")), "file:///a%20b/c");
        for path in ["/a/b", "/é 100%/#1?", "/a\\b", "/(x)[y]{z}&+,;=@:~"] {
            assert_eq!(path_of(&file_uri(Path::new(path))), path);
        }
    }
}
