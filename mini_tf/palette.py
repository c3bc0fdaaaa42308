"""The colours of all pictures: Okabe and Ito's, which colour-blind people can tell apart, too.

`tests/test_palette.py` simulates the three kinds of colour blindness and measures how far apart any two are.
Source: Okabe and Ito, "Color Universal Design", 2008, https://jfly.uni-koeln.de/color/
"""

BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
BLACK, GREY = "#262626", "#555555"
COLOURS = BLUE, RED, GREEN, ORANGE, PURPLE, BLACK, GREY          # of several curves, in this order
