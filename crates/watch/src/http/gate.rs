//! Access control: the one place that refuses requests.
//!
//! A browser sends requests for every page that it shows, even for a foreign page. Four rules keep
//! a foreign page out, and each is sufficient alone:
//!
//! 1. `Host` must be a name of this server. With DNS rebinding, a page of another site gives its
//!    name this address, but sends its own name. An address cannot be rebound, so addresses are
//!    accepted; a server for this host alone accepts only its own.
//!
//! 2. `Origin`, if sent, must be the page of this server, and `Sec-Fetch-Site` must not name
//!    another site.
//!
//! 3. A request that acts is POST and needs the token in a header field. A foreign page can
//!    neither read the token nor send that field without permission, and this server never gives
//!    it.
//!
//! 4. No other site may frame or read an answer (`response`).
//!
//! The token also keeps other users of the host from acting as the user who started the server,
//! perhaps root. It appears only on the terminal, in the part of a URL that browsers do not send.

use std::fmt;
use std::net::IpAddr;

use super::request::{Method, Request};
use super::response::Response;
use super::routes::Access;

/// Characters of a token at least: 64 bits, if they are chosen by chance among sixteen.
pub const TOKEN_CHARACTERS_MIN: usize = 16;

/// A secret that every acting request must contain.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// One of 128 random bits.
    ///
    /// # Errors
    ///
    /// The kernel gives no random bytes.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// A token that the user chose.
    ///
    /// # Errors
    ///
    /// The reason, as text.
    pub fn chosen(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < TOKEN_CHARACTERS_MIN {
            return Err(format!("it has fewer than {TOKEN_CHARACTERS_MIN} characters"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
            return Err("it has other characters than letters, digits and - . _ ~".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// The text; for the user who started the server.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Takes as long for a nearly right guess as for any other: what is compared are hashes.
    fn is(&self, guess: &str) -> bool {
        blake3::hash(self.0.as_bytes()) == blake3::hash(guess.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The rules of one server.
#[derive(Debug)]
pub struct Gate {
    /// Serves this host alone.
    local: bool,
    /// Other names that the server goes by, of a proxy before it for example.
    names: Vec<String>,
    token: Token,
    /// The token is required for reading, too.
    closed: bool,
}

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It asks for a host that this server is not.
    Host,
    /// Another site's page asks.
    Site,
    /// It has no token, or a wrong one.
    Token,
}

impl Gate {
    /// For a server that listens on `address`. The token is required for everything but the page
    /// itself if the address is not this host's alone.
    pub fn new(address: IpAddr, token: Token) -> Self {
        let local = address.is_loopback();
        Self { local, names: Vec::new(), token, closed: !local }
    }

    /// Wants the token also of who only looks.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.closed = true;
        self
    }

    /// Another name that requests may ask for.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.names.push(name.trim_end_matches('.').to_ascii_lowercase());
        self
    }

    /// Lets a request through, or says why not.
    ///
    /// # Errors
    ///
    /// [`Refused`].
    pub fn admit(&self, request: &Request, access: Access) -> Result<(), Refused> {
        let host = request.field("host").ok_or(Refused::Host)?;
        if !self.is_own(host) {
            return Err(Refused::Host);
        }
        if let Some(origin) = request.field("origin")
            && !is_page_of(origin, host)
        {
            return Err(Refused::Site);
        }
        let foreign =
            !matches!(request.field("sec-fetch-site"), None | Some("same-origin" | "none"));
        // A link from elsewhere may lead to the page.
        if foreign && (access != Access::Page || request.method() == Method::Post) {
            return Err(Refused::Site);
        }
        let is_required = match access {
            Access::Page => false,
            Access::Look => self.closed,
            Access::Act => true,
        };
        if is_required && !bearer(request).is_some_and(|guess| self.token.is(guess)) {
            return Err(Refused::Token);
        }
        Ok(())
    }

    fn is_own(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else { return false };
        if self.names.contains(&name) {
            return true;
        }
        match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => !self.local || address.is_loopback(),
            Err(_) => name == "localhost",
        }
    }
}

impl Refused {
    /// The answer that says so.
    pub(super) fn response(self) -> Response {
        match self {
            Self::Host => Response::error(
                421,
                "this server does not go by the name in the Host field; ask for its address, or \
                 start it with --host NAME",
            ),
            Self::Site => Response::error(403, "pages of other sites may not ask this server"),
            Self::Token => Response::error(
                401,
                "this needs the token: open the address that \"ogive watch\" printed, or send \
                 \"Authorization: Bearer TOKEN\"",
            )
            .header("WWW-Authenticate", "Bearer realm=\"ogive\""),
        }
    }
}

fn bearer(request: &Request) -> Option<&str> {
    let (scheme, token) = request.field("authorization")?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The name in a `Host` field, without the port and in small letters. `None` for what is no host.
fn host_name(host: &str) -> Option<String> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (format!("[{address}]"), port)
        }
        None => match host.split_once(':') {
            Some((name, _)) => (name.to_owned(), &host[name.len()..]),
            None => (host.to_owned(), ""),
        },
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || (digits.is_empty() != port.is_empty()) {
        return None;
    }
    let name = name.strip_suffix('.').map(str::to_owned).unwrap_or(name);
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// Whether an origin is a page of the host that was asked; a proxy may have added TLS.
fn is_page_of(origin: &str, host: &str) -> bool {
    let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    place.is_some_and(|place| place.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::super::request::Head;
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn gate(address: &str) -> Gate {
        Gate::new(address.parse().unwrap(), Token::chosen(TOKEN).unwrap())
    }

    fn asked(gate: &Gate, method: &str, access: Access, fields: &str) -> Result<(), Refused> {
        let text = format!("{method} / HTTP/1.1\r\n{fields}\r\n");
        let Ok(Head::Whole(request, ..)) = Request::parse(text.as_bytes()) else {
            panic!("{text}")
        };
        gate.admit(&request, access)
    }

    fn looked(gate: &Gate, fields: &str) -> Result<(), Refused> {
        asked(gate, "GET", Access::Look, fields)
    }

    #[test]
    fn only_names_of_the_server_are_served() {
        let local = gate("127.0.0.1");
        for host in ["localhost", "LOCALHOST:7380", "127.0.0.1:7380", "[::1]:1", "localhost."] {
            assert_eq!(looked(&local, &format!("Host: {host}\r\n")), Ok(()), "{host}");
        }
        let hosts = [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "",
            ":7380",
            "[::1",
            "localhost:x",
            "localhost:",
            "0.0.0.0",
            "user@localhost",
        ];
        for host in hosts {
            let fields = format!("Host: {host}\r\n");
            assert_eq!(looked(&local, &fields), Err(Refused::Host), "{host}");
            // A request under a foreign name does not even get the page.
            assert_eq!(asked(&local, "GET", Access::Page, &fields), Err(Refused::Host), "{host}");
        }
        assert_eq!(looked(&local, ""), Err(Refused::Host));
        let named = gate("127.0.0.1").name("watch.example");
        assert_eq!(looked(&named, "Host: Watch.Example:443\r\n"), Ok(()));
    }

    #[test]
    fn an_open_address_requires_the_token_for_reading_and_no_foreign_name() {
        let open = gate("0.0.0.0");
        let right = format!("Authorization: Bearer {TOKEN}\r\n");
        assert_eq!(looked(&open, "Host: 10.0.0.1\r\n"), Err(Refused::Token));
        assert_eq!(looked(&open, &format!("Host: 10.0.0.1\r\n{right}")), Ok(()));
        assert_eq!(looked(&open, &format!("Host: evil.example\r\n{right}")), Err(Refused::Host));
        assert_eq!(asked(&open, "GET", Access::Page, "Host: 10.0.0.1\r\n"), Ok(()));
    }

    #[test]
    fn pages_of_other_sites_are_turned_away() {
        let gate = gate("127.0.0.1");
        let post = |fields: &str| {
            let fields =
                format!("Host: localhost:7380\r\nAuthorization: Bearer {TOKEN}\r\n{fields}");
            asked(&gate, "POST", Access::Act, &fields)
        };
        assert_eq!(post(""), Ok(()));
        assert_eq!(
            post("Origin: http://localhost:7380\r\nSec-Fetch-Site: same-origin\r\n"),
            Ok(())
        );
        assert_eq!(post("Origin: https://localhost:7380\r\n"), Ok(()));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:7381",
            "http://localhost",
            "localhost:7380",
            "file://",
            "http://localhost:7380.evil.example",
        ] {
            assert_eq!(post(&format!("Origin: {origin}\r\n")), Err(Refused::Site), "{origin}");
        }
        for site in ["cross-site", "same-site", "other"] {
            assert_eq!(post(&format!("Sec-Fetch-Site: {site}\r\n")), Err(Refused::Site));
            let fields = format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n");
            assert_eq!(looked(&gate, &fields), Err(Refused::Site));
            assert_eq!(asked(&gate, "GET", Access::Page, &fields), Ok(()), "a link leads here");
        }
    }

    #[test]
    fn every_action_requires_the_token() {
        let gate = gate("127.0.0.1");
        let post =
            |field: &str| asked(&gate, "POST", Access::Act, &format!("Host: localhost\r\n{field}"));
        assert_eq!(post(""), Err(Refused::Token));
        assert_eq!(post("Authorization: Bearer\r\n"), Err(Refused::Token));
        assert_eq!(post("Authorization: Bearer 0123456789abcdee\r\n"), Err(Refused::Token));
        assert_eq!(post("Authorization: Basic 0123456789abcdef\r\n"), Err(Refused::Token));
        assert_eq!(post(&format!("authorization: bearer {TOKEN}\r\n")), Ok(()));
        let closed = self::gate("127.0.0.1").closed();
        assert_eq!(looked(&closed, "Host: localhost\r\n"), Err(Refused::Token));
    }

    #[test]
    fn tokens_are_long_and_not_shown() {
        assert!(Token::chosen("short").is_err());
        assert!(Token::chosen("has a space in it").is_err());
        let random = Token::random().unwrap();
        assert_eq!(random.text().len(), 32);
        assert_ne!(random.text(), Token::random().unwrap().text());
        assert!(!format!("{random:?}").contains(random.text()));
    }
}
