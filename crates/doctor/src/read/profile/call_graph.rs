//! The call graphs that `perf report` and `perf top` draw below a row, flattened into chains.
//!
//! There are two drawings: `--stdio` (`|`, `--89.45%--symbol`) and the text of the browser (`-
//! 65.43% symbol`, three blanks per level). There are two orders: leaf first (callers below) and
//! root first (callees below). There are two kinds of percentages: of all samples, or of the entry
//! above. The order and the kind are not printed; the tree itself shows both (see
//! [`Graph::is_relative`] and [`Graph::is_root_first`]).
//!
//! A tree is a list of nodes with their parents' positions, so depth needs no recursion.

use std::sync::Arc;

use crate::evidence::{Chain, Frame, Source};
use crate::pattern::Pattern;
use crate::read::text::{frame, number, word_lists};

/// Nodes of one graph at most; deeper ones are dropped.
const MAX_NODES: usize = 20_000;

/// Frames of one chain at most: the kernel's default limit.
const MAX_FRAMES: usize = 127;

/// Functions at the root of kernel or thread stacks.
const ROOTS: &str = "ret_from_fork ret_from_fork_asm kthread entry_SYSCALL_64_after_hwframe start_thread \
     __libc_start_main _start secondary_startup_64 secondary_startup_64_no_verify \
     system_call_fastpath thread_generic_wrapper fork_exit thread_start kernel_thread_helper \
     child_rip";

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    /// Column of the branch; it decides which node is the parent.
    column: usize,
    percent: Option<f64>,
    frames: Vec<Arc<Frame>>,
    line: u32,
}

/// One graph while it is read.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    /// Nodes from the root to the last one read.
    open: Vec<usize>,
}

static BRANCH: Pattern =
    Pattern::new(r"^([\s|]*?)[|\s]?(--?)\s*(\d+(?:[.,]\d+)?)%\s*--+\s*(\S.*)$");
static ROOT: Pattern = Pattern::new(r"^([\s|]*)---\s*(\S.*)$");
static BROWSER: Pattern = Pattern::new(r"^(\s*)([-+]?)\s*(\d+(?:[.,]\d+)?)%\s+(\S.*)$");
static BROWSER_PLAIN: Pattern =
    Pattern::new(r"^(\s*)([-+]?)\s*([A-Za-z_\[0][^\s|]*(?:\s+\[\w[\w.]*\])?)$");
static PLAIN: Pattern = Pattern::new(r"^([\s|]*)([A-Za-z_\[0(.$<~][^|]*)$");

/// Whether a line is certainly part of a drawing.
pub(crate) fn is_drawn(text: &str) -> bool {
    let bare = text.trim_start();
    text.starts_with([' ', '|']) && (bare.starts_with('|') || bare.starts_with("--"))
}

impl Graph {
    /// Takes one line below a row; `false` if it is not part of a graph.
    pub(crate) fn take(&mut self, text: &str, line: u32) -> bool {
        let bare = text.trim();
        if bare.is_empty() || bare.bytes().all(|byte| byte == b'|' || byte == b' ') {
            return !bare.is_empty();
        }
        if self.nodes.len() >= MAX_NODES {
            return true;
        }
        if let Some(found) = BRANCH.captures(text) {
            let column = found.get(2).map_or(0, |dashes| dashes.start());
            self.branch(column, number::percent(&found[3]), &found[4], line);
            return true;
        }
        if let Some(found) = ROOT.captures(text) {
            self.open.clear();
            self.branch(found[1].len(), None, &found[2], line);
            return true;
        }
        if let Some(found) = BROWSER.captures(text) {
            self.branch(found[1].len(), number::percent(&found[3]), &found[4], line);
            return true;
        }
        if self.nodes.is_empty() && !text.contains('|') {
            // The browser draws a chain without branches by indentation alone.
            let Some(found) = BROWSER_PLAIN.captures(text) else { return false };
            self.branch(found[1].len(), None, &found[3], line);
            return text.starts_with(' ');
        }
        let Some(found) = PLAIN.captures(text) else { return false };
        if !text.starts_with([' ', '\t', '|']) {
            return false;
        }
        self.plain(found[1].len(), &found[2], line);
        true
    }

    fn branch(&mut self, column: usize, percent: Option<f64>, text: &str, line: u32) {
        while self.open.last().is_some_and(|&node| self.nodes[node].column >= column) {
            self.open.pop();
        }
        let parent = self.open.last().copied();
        self.open.push(self.nodes.len());
        self.nodes.push(Node { parent, column, percent, frames: vec![graph_frame(text)], line });
    }

    fn plain(&mut self, column: usize, text: &str, line: u32) {
        while self.open.len() > 1
            && self.open.last().is_some_and(|&node| self.nodes[node].column >= column)
        {
            self.open.pop();
        }
        match self.open.last() {
            Some(&node) => {
                let node = &mut self.nodes[node];
                if node.frames.len() < 512 {
                    node.frames.push(graph_frame(text));
                }
                node.line = line;
            }
            None => self.branch(column, None, text, line),
        }
    }

    /// Whether the percentages must be of the entry above: some entry exceeds the entry above it. A
    /// part of a whole cannot.
    pub(crate) fn is_relative(&self, row_percent: f64) -> bool {
        self.nodes.iter().any(|node| {
            let above = self.percent_above(node).unwrap_or(row_percent);
            node.percent.is_some_and(|percent| percent > above + 0.05)
        })
    }

    fn percent_above(&self, node: &Node) -> Option<f64> {
        let mut parent = node.parent;
        while let Some(at) = parent {
            if let Some(percent) = self.nodes[at].percent {
                return Some(percent);
            }
            parent = self.nodes[at].parent;
        }
        None
    }

    /// Whether callees stand below callers.
    ///
    /// A known root at the top says yes, a known root at the end says no. Otherwise, a row's own
    /// function at the top is the leaf if most of its samples are its own.
    fn is_root_first(&self, row: &Frame, children_shown: bool, self_part: f64) -> bool {
        let is_root = |frame: &Arc<Frame>| {
            frame.symbol.as_deref().is_some_and(|name| word_lists::has(ROOTS, name))
        };
        let first = self.nodes.first().and_then(|node| node.frames.first());
        if first.is_some_and(is_root) {
            return true;
        }
        if self.nodes.iter().any(|node| node.frames.last().is_some_and(is_root)) || !children_shown
        {
            return false;
        }
        let begins_with_row = first.is_some_and(|first| first.symbol == row.symbol);
        if begins_with_row { self_part < 0.5 } else { self_part >= 0.5 || self_part == 0.0 }
    }

    /// The chains, leaf first, in percent of all samples.
    pub(crate) fn chains(
        &self,
        row: &Frame,
        row_percent: f64,
        self_percent: Option<f64>,
        relative: bool,
        input: &Source,
    ) -> Vec<Chain> {
        let self_part =
            self_percent.map_or(1.0, |own| if row_percent > 0.0 { own / row_percent } else { 1.0 });
        let root_first = self.is_root_first(row, self_percent.is_some(), self_part);
        let mut absolute: Vec<f64> = Vec::with_capacity(self.nodes.len());
        let mut below: Vec<f64> = vec![0.0; self.nodes.len()];
        for node in &self.nodes {
            // Parents precede their children.
            let above = node.parent.map_or(row_percent, |parent| absolute[parent]);
            let own = match node.percent {
                None => above,
                Some(percent) if relative => above * percent / 100.0,
                Some(percent) => percent.min(above.max(percent)),
            };
            if let Some(parent) = node.parent {
                below[parent] += own;
            }
            absolute.push(own);
        }
        let row_frame = Arc::new(row.clone());
        let mut chains = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let rest = absolute[at] - below[at];
            if rest <= 0.005 && below[at] > 0.0 {
                continue;
            }
            let mut frames = self.path(at, root_first);
            if root_first {
                frames.reverse();
            }
            if !frames.iter().any(|frame| frame.symbol == row.symbol) {
                let row = Arc::clone(&row_frame);
                if root_first { frames.push(row) } else { frames.insert(0, row) }
            }
            let source = Source { input: input.input.clone(), line: Some(node.line) };
            chains.push(Chain { frames, percent: rest.max(0.0), source });
        }
        chains
    }

    /// Frames from the top of the drawing to the end of a node; beyond [`MAX_FRAMES`], those
    /// nearest to the leaf.
    fn path(&self, node: usize, root_first: bool) -> Vec<Arc<Frame>> {
        let frames = |at: usize| self.nodes[at].frames.iter();
        if root_first {
            let mut path = Vec::new();
            let mut next = Some(node);
            while let Some(at) = next.filter(|_| path.len() < MAX_FRAMES) {
                path.extend(frames(at).rev().take(MAX_FRAMES - path.len()).cloned());
                next = self.nodes[at].parent;
            }
            path.reverse();
            return path;
        }
        let mut nodes = vec![node];
        while let Some(parent) = self.nodes[nodes[nodes.len() - 1]].parent {
            nodes.push(parent);
        }
        nodes.into_iter().rev().flat_map(frames).take(MAX_FRAMES).cloned().collect()
    }
}

fn graph_frame(text: &str) -> Arc<Frame> {
    // Some lines end with the bar of the next branch.
    let text = text.trim_end_matches(['|', ' ']);
    let name = text.split("  ").next().unwrap_or(text);
    let module = text[name.len()..].trim();
    Arc::new(frame::frame(name, (!module.is_empty()).then_some(module)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains have a limit, so frames do not grow with the square of the lines. The leaf stays.
    #[test]
    fn a_deep_drawing_has_no_more_frames_than_chains_times_a_limit() {
        const DEPTH: usize = 2_000;
        let mut graph = Graph::default();
        for depth in 0..DEPTH {
            let bars = " ".repeat(depth.min(900));
            graph.take(&format!("{bars}|--{}%--f{depth}", 90.0 - depth as f64 / 100.0), 1);
        }
        let source = Source { input: "t".into(), line: None };
        let row = frame::frame("row", None);
        let leaf_first = graph.chains(&row, 99.0, None, false, &source);
        let is_row = |chain: &Chain| chain.frames[0].symbol.as_deref() == Some("row");
        assert!(leaf_first.iter().all(is_row));
        for chains in [leaf_first, graph.chains(&row, 99.0, Some(0.0), false, &source)] {
            let frames: usize = chains.iter().map(|chain| chain.frames.len()).sum();
            assert!(chains.len() >= 1000 && frames <= chains.len() * (MAX_FRAMES + 1), "{frames}");
        }
    }

    fn chains(
        text: &str,
        row: &str,
        row_percent: f64,
        self_percent: Option<f64>,
    ) -> Vec<(String, f64)> {
        let mut graph = Graph::default();
        for (number, line) in text.lines().enumerate() {
            graph.take(line, number as u32 + 1);
        }
        let source = Source { input: "t".into(), line: None };
        let row = frame::frame(row, None);
        let relative = graph.is_relative(row_percent);
        graph
            .chains(&row, row_percent, self_percent, relative, &source)
            .into_iter()
            .map(|chain| {
                let names: Vec<_> =
                    chain.frames.iter().filter_map(|frame| frame.symbol.clone()).collect();
                (names.join("<"), (chain.percent * 100.0).round() / 100.0)
            })
            .collect()
    }

    #[test]
    fn callers_below_a_leaf_are_read_in_parts_of_the_whole() {
        let text = "            |
            ---kfpu_end
               |
                --40.03%--aes_encrypt_block
                          |
                          |--20.37%--ccm_mode
                          |          zio_done
                          |
                           --19.66%--ccm_final
                                     kthread
";
        assert_eq!(
            chains(text, "kfpu_end", 40.06, None),
            [
                ("kfpu_end".to_owned(), 0.03),
                ("kfpu_end<aes_encrypt_block<ccm_mode<zio_done".to_owned(), 20.37),
                ("kfpu_end<aes_encrypt_block<ccm_final<kthread".to_owned(), 19.66),
            ]
        );
    }

    #[test]
    fn percentages_of_the_entry_above_are_multiplied_out() {
        let text = "            |
            ---osq_lock
               mutex_lock
               |
                --89.45%--vdev_queue_io
                          zio_nowait
";
        let found = chains(text, "osq_lock", 28.55, Some(28.55));
        assert_eq!(found[1], ("osq_lock<mutex_lock<vdev_queue_io<zio_nowait".to_owned(), 25.54));
    }

    #[test]
    fn the_drawing_of_the_browser_shows_callees() {
        let text = "   - 65.43% taskq_thread
      - 63.36% arc_prune_task
         - 66.84% zpl_prune_sb
              37.34% _raw_spin_lock
            + 15.49% iput
      + 1.07% zio_execute
";
        let found = chains(text, "taskq_thread", 86.49, Some(0.07));
        let lock = found.iter().find(|(names, _)| names.starts_with("_raw_spin_lock")).unwrap();
        assert_eq!(lock.0, "_raw_spin_lock<zpl_prune_sb<arc_prune_task<taskq_thread");
        assert!((lock.1 - 8.95).abs() < 0.02, "{}", lock.1);
        let sum: f64 = found.iter().map(|(_, percent)| percent).sum();
        assert!((sum - 86.49 * 0.6543).abs() < 0.1, "{sum}");
    }
}
