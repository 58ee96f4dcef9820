"""Scoring as NIST's sclite and csrfilt score speech: alternations, optional words and fragments
(`alignment`), ctm against stm (`segments`), global maps (`glm`).
"""
