//! Who listens on a port: an extension's last load may be in the way of its next.

use std::collections::HashSet;

/// Whether a process listens on a TCP port. Where the system does not say, nobody does. It reads all of the process's
/// descriptors, so it is not to be done under a lock or in an async task.
pub fn listens(pid: u32, port: u16) -> bool {
    let sockets: HashSet<String> = ["tcp", "tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok())
        .flat_map(|table| listeners(&table, port))
        .collect();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.is_some_and(|inode| sockets.contains(inode))
    })
}

/// The sockets of a table of the kernel that listen on a port.
fn listeners(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && row[1].ends_with(&suffix) && row[3] == LISTEN)
        .map(|row| row[9].to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_while_it_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(std::process::id(), port));
        drop(listener);
        assert!(!listens(std::process::id(), port));
    }
}
