"""Times as the pages of Sonar write them, the day first that sorts: 2026-11-24 14:20, UTC."""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i"
DATE_INPUT_FORMATS = ["%Y-%m-%d"]
TIME_INPUT_FORMATS = ["%H:%M:%S", "%H:%M", "%H:%M:%S.%f"]
DATETIME_INPUT_FORMATS = [
    f"{date} {time}" for date in DATE_INPUT_FORMATS for time in TIME_INPUT_FORMATS
]
