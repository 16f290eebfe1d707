"""The command line of the doctor's suites: names of cases, and --list."""
import sys


def chosen(parser, kind, cases):
    """Returns the arguments, and the cases that they name; without a name, all cases."""
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(case.name for case in cases))
        sys.exit(0)
    unknown = set(args.names) - {case.name for case in cases}
    if unknown:
        print(f"there is no {kind} {', '.join(sorted(unknown))}; see --list", file=sys.stderr)
        sys.exit(2)
    return args, [case for case in cases if case.name in args.names or not args.names]
