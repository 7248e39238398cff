//! Replaces virtual functions of V8's objects, where V8 has no interface for what a fork needs.
//!
//! The places of the functions are those of `v8-platform.h` in the version that [`KNOWN_VERSION`] names. With any other
//! version nothing is replaced.

use deno_core::v8;

/// The version of V8 whose tables are known.
const KNOWN_VERSION: &str = "15.0.245.2-rusty";

/// Words before the first function: the offset to the whole object, and the type information.
const PREFIX: usize = 2;

/// Whether the known version of V8 is linked.
pub fn is_known() -> bool {
    v8::V8::get_version() == KNOWN_VERSION
}

/// Gives an object a table of its own, in which some functions are replaced.
///
/// # Safety
///
/// The object must have one table of exactly so many functions, must not be used by another thread, and every replacement
/// must be a function of the same signature as what stood in its place.
pub unsafe fn replace(object: *mut (), functions: usize, replaced: &[(usize, *const ())]) {
    let object = object.cast::<*const usize>();
    // SAFETY: an object with virtual functions begins with the address of its table, in front of which are the words of
    // the prefix. The new table has the same functions but for those that are replaced, and lives as long as the program.
    unsafe {
        let old = (*object).sub(PREFIX);
        let mut table: Vec<usize> = (0..PREFIX + functions).map(|place| *old.add(place)).collect();
        for (place, function) in replaced {
            table[PREFIX + place] = *function as usize;
        }
        object.write_volatile(Vec::leak(table).as_ptr().add(PREFIX));
    }
}

/// The virtual function at a place of an object's table.
///
/// # Safety
///
/// The object must have a table with at least that many functions.
pub unsafe fn function(object: *const (), place: usize) -> *const () {
    // SAFETY: see `replace`.
    unsafe { *(*object.cast::<*const *const ()>()).add(place) }
}
