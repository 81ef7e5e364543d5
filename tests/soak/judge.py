"""The rules that the server is judged by when the load is over."""

MEMORY_GROWTH = 2 << 20  # bytes that the end may have above the base
TREND_GROWTH = 1 << 20  # bytes that the straight line through the samples may rise
START_GROWTH = 6 << 20  # bytes that the end may have above the server before its first load


def slope(points):
    """Of the straight line, by least squares, through (x, y)."""
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        return 0.0
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def rise(points):
    """By how much the line rises from the first point to the last."""
    return slope(points) * (points[-1][0] - points[0][0]) if len(points) > 1 else 0.0


def check_memory(base, end, limit=MEMORY_GROWTH):
    """(good, text): bytes after the load against bytes before it, or after its first part."""
    grown = end - base
    return grown <= limit, f"{grown / 1e6:+.2f} MB (at most +{limit / 1e6:.2f})"


def check_trend(points):
    """(good, text): memory at quiet moments, as (seconds, bytes); None when there are too few."""
    if len(points) < 4:
        return None
    grown = rise(points)
    text = f"{grown / 1e6:+.2f} MB over {len(points)} samples (at most +{TREND_GROWTH / 1e6:.2f})"
    return grown <= TREND_GROWTH, text


def all_back(start, end):
    return all(end[name] <= n for name, n in start.items())


def check_back(start, end):
    """(good, text): a count that must be back to where it was."""
    return end <= start, f"{end}, at the start {start}"
