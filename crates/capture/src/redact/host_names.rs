//! The names of a host, its users and its mount points.

/// Names that a redacted capture must not contain.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// Names of the host.
    pub(crate) hosts: Vec<String>,
    /// Names of people.
    pub(crate) users: Vec<String>,
    /// Mount points of file systems.
    pub(crate) mount_points: Vec<String>,
}

impl Secrets {
    /// Reads the names of this host. A file that cannot be read adds none.
    pub(crate) fn of_this_host() -> Self {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let short = node.split('.').next().unwrap_or_default().to_owned();
        let mut users = users(&text("/etc/passwd"));
        for variable in ["SUDO_USER", "USER", "LOGNAME"] {
            users.extend(std::env::var(variable).ok().filter(|name| name != "root"));
        }
        let mount_points = mount_points(&text("/proc/self/mounts"));
        Self { hosts: vec![node, short], users, mount_points }
    }
}

/// A file as lossy text, like the texts of a capture. One name that is not UTF-8 does not hide the
/// others.
fn text(path: &str) -> String {
    std::fs::read(path).map_or_else(|_| String::new(), |bytes| lossy(&bytes))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names of people. System users are the same on every host.
fn users(passwd: &str) -> Vec<String> {
    let person = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let number: u32 = fields.get(2)?.parse().ok()?;
        (1000..65534).contains(&number).then(|| (*fields.first().unwrap_or(&"")).to_owned())
    };
    passwd.lines().filter_map(person).collect()
}

/// The mount points of /proc/self/mounts, unescaped: the kernel writes blanks as `\040`.
fn mount_points(mounts: &str) -> Vec<String> {
    mounts
        .lines()
        .filter_map(|line| {
            line.split(' ').nth(1).map(|name| lossy(&ogive_proc::unescaped(name.as_bytes())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_unescaped() {
        let mounts =
            lossy(b"a /mnt/My\\040Documents ext4 rw 0 0\nb /mnt/caf\xe9\\134 ext4 rw 0 0\n");
        assert_eq!(mount_points(&mounts), ["/mnt/My Documents", "/mnt/caf\u{fffd}\\"]);
        let passwd = "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(users(passwd), ["ann"]);
    }
}
