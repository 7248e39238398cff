//! Compiled code, shared by all isolates of the process.
//!
//! The first isolate that evaluates a module pays for compiling it; every later one, whether another
//! extension or the next generation of the same, starts from the engine's own compiled form.

use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::RwLock;

use deno_core::SourceCodeCacheInfo;

/// The most bytes the cache holds. Deno's own modules take one megabyte; the rest is for extensions.
const MAX_CACHE_BYTES: usize = 64 * 1024 * 1024;

#[derive(Default)]
struct Cache {
    entries: HashMap<String, (u64, Arc<[u8]>)>,
    bytes: usize,
}

static CACHE: LazyLock<RwLock<Cache>> = LazyLock::new(RwLock::default);

/// What is known for a source: its hash, and its compiled form if there is one.
pub fn lookup(specifier: &str, source: &str) -> SourceCodeCacheInfo {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let hash = hasher.finish();
    let data = CACHE.read().ok().and_then(|cache| {
        let (stored_hash, data) = cache.entries.get(specifier)?;
        (*stored_hash == hash).then(|| data.to_vec().into())
    });
    SourceCodeCacheInfo { hash, data }
}

/// Keeps a compiled form for the next isolate.
pub fn store(specifier: &str, hash: u64, data: &[u8]) {
    let Ok(mut cache) = CACHE.write() else { return };
    if cache.bytes + data.len() > MAX_CACHE_BYTES {
        return;
    }
    cache.bytes += data.len();
    if let Some((_, old)) = cache.entries.insert(specifier.to_owned(), (hash, data.into())) {
        cache.bytes -= old.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_not_served_and_a_full_cache_takes_nothing_more() {
        let hash = lookup("test:a", "one").hash;
        store("test:a", hash, b"compiled");
        assert_eq!(lookup("test:a", "one").data.as_deref(), Some(&b"compiled"[..]));
        assert!(lookup("test:a", "two").data.is_none());
        let too_much = vec![0; MAX_CACHE_BYTES];
        store("test:b", lookup("test:b", "b").hash, &too_much);
        assert!(lookup("test:b", "b").data.is_none());
    }
}
