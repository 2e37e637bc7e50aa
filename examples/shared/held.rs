//! What a process holds.

/// Memory, open files and threads of this process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) files: usize,
    pub(crate) threads: usize,
}

impl Held {
    /// What this process holds now, from Linux's `/proc/self`; zeros on other systems.
    pub(crate) fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default()
        };
        Held {
            bytes: field("VmRSS:") * 1024,
            files: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            threads: field("Threads:") as usize,
        }
    }
}
